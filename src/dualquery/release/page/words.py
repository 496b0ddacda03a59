"""The privacy statement and the parameters, for people who have never heard of ε."""

from __future__ import annotations

import math
from html import escape
from statistics import NormalDist

from dualquery.base.stored import Json
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import decimals_up, rounded_up
from dualquery.privacy.statement import PrivacyStatement, four_digits
from dualquery.privacy.unit import Weigh

ACCOUNTANTS = {
    "pure": "adds up the worst case of every draw; needs no δ",
    "advanced": "advanced composition, every draw at the highest price (the paper's)",
    "per-round": "the same theorem with every round at its own price",
    "zcdp": "zero-concentrated differential privacy",
    "gaussian": "compares the whole run with one Gaussian measurement",
}

PARAMETERS = {
    "player": "who answers the draws: single records, or a fitted model",
    "table_size": "records of the private table, or the public number scores are divided by",
    "epsilon": "the budget that was asked for",
    "delta": "the budget's δ: what is added to e^ε times the chance",
    "neighbours": "what one person's influence means",
    "accountant": "the theorem that states ε",
    "rounds": "rounds of the game",
    "samples": "queries drawn per round",
    "eta": "learning rate of the query player",
    "queries": "queries of the workload",
    "oracle": "how records that satisfy the draws were found",
    "free": "the value of attributes that no draw names",
    "free_share": "the share of the budget that their one-way tables took",
    "training": "how a model is fitted to draws",
    "tables": "the marginals that were measured, and how models were fitted to them",
    "seed": "set only in experiments, which are not private",
    "start": "public input: what it expects of tables was weighed against the measurements",
    "known": "public input: shares that the model obeys",
    "unit": "whose records are protected together",
    "weight": "the column that says how much each record counts, and the most that one may",
}


def privacy_section(
    privacy: PrivacyStatement,
    tables: int = 0,
    fine: int = 0,
    rare: int = 0,
    *,
    drawn: bool = True,
) -> str:
    """The promise, in words and in figures.

    Args:
        privacy: the statement.
        tables: how many marginals were measured.
        fine: how many columns were measured more finely than in their ranges.
        rare: how many counts of records with rare codes were measured.
        drawn: whether any query was drawn.
    """
    body = [_promise(privacy)]
    body.extend(f"<p><strong>Warning: {escape(line)}.</strong></p>" for line in privacy.warnings)
    if privacy.private:
        body.append(_meaning(privacy))
    body.append(f"<p>{_unit(privacy)}</p>")
    touched = ["to draw queries at random"] if drawn else []
    if tables:
        cells = f"{rare:,} sets of rare codes and " if rare else ""
        touched.append(f"to count {cells}the cells of {tables:,} marginals, each with random noise")
    if fine:
        noun = "column of numbers or dates was" if fine == 1 else "columns of numbers or dates were"
        touched[-1] += (
            f" ({fine:,} {noun} counted in finer parts than the ranges shown here, once and for "
            "the same price; values inside a range are drawn from them)"
        )
    body.append(
        f"<p>The private table was touched only {', and '.join(touched)}. Everything on this page, "
        "answers, rows and charts, was computed from that alone.</p>"
    )
    if privacy.about_header:
        body.append(f"<p><strong>{escape(_sentence(privacy.about_header))}</strong></p>")
    return "".join(body)


def accountants_section(privacy: PrivacyStatement) -> str:
    """The run by every accountant, and the promise for several records together."""
    return _by_accountant(privacy) + _groups(privacy)


def _promise(privacy: PrivacyStatement) -> str:
    if not privacy.private:
        return (
            f'<p class="stamp">{escape(privacy.stamp)}. This run used a fixed seed, so that it can '
            "be repeated. Nothing below is a guarantee.</p>"
        )
    chance = "0" if privacy.accountant == "pure" else rounded_up(privacy.delta)
    return (
        f"<p><strong>ε = {four_digits(privacy.epsilon)} at δ = {chance}</strong>, "
        f"{escape(str(privacy.neighbours))} neighbours, by the {escape(privacy.accountant)} "
        "accountant.</p>"
    )


def _meaning(privacy: PrivacyStatement) -> str:
    replaced = privacy.neighbours is Neighbours.REPLACE_ONE
    sentences = []
    if privacy.epsilon < 20:
        pure = privacy.accountant == "pure"
        one = "record" if privacy.persons is None else "person's records"
        whatever = "Whatever one person's record said" if replaced else f"With or without one {one}"
        if replaced and privacy.persons is not None:
            whatever = "Whatever all records of one person said"
        other = "with another" if replaced else "without"
        more = "" if pure else f", plus δ = {rounded_up(privacy.delta)}"
        times = decimals_up(math.exp(privacy.epsilon), 2)
        sentences.append(
            f"{whatever}, this release would have come out nearly the same way: the chance of any "
            f"set of outcomes is at most {times} times (e^ε) what it "
            f"is {other}{more}."
        )
    if privacy.about_delta:
        sentences.append(_sentence(privacy.about_delta))
    if 0.0 < privacy.mu < 6.0:
        normal = NormalDist()
        power = normal.cdf(normal.inv_cdf(0.05) + privacy.mu)
        unsure = (
            "which of two records a person had, and accepts being wrong 5 % of the time when it "
            "was the first, notices the second"
            if replaced
            else "whether a record is in the table, and accepts being wrong 5 % of the time when "
            "it is not, notices it"
        )
        sentences.append(
            f"Put as a test: someone who wants to tell from this release {unsure} at most "
            f"{decimals_up(100 * power)} % of the time (5 % is what guessing achieves)."
        )
    return f"<p>{' '.join(sentences)}</p>" if sentences else ""


def _unit(privacy: PrivacyStatement) -> str:
    if privacy.weight is not None:
        return _weighted(privacy)
    if privacy.persons is not None:
        return _of_persons(privacy)
    if privacy.neighbours is Neighbours.REPLACE_ONE:
        return (
            f"The promise protects the content of one record. The number of records, "
            f"{privacy.rows:,}, is public. If a person has several records, the promise holds for "
            "each of them alone. For all of them together a weaker one holds: see the table for "
            "specialists."
        )
    return (
        "The promise protects whether a record is in the table at all. The number of records is "
        f"not published; scores were divided by the public number {privacy.rows:,}. For replacing "
        "the content of a record, which is another promise, the same run costs "
        f"ε = {four_digits(privacy.replacement[privacy.accountant])}."
    )


def _weighted(privacy: PrivacyStatement) -> str:
    replaced = privacy.neighbours is Neighbours.REPLACE_ONE
    one = "record" if privacy.persons is None else "person"
    what = f"what is said of one {one}, weights included" if replaced else f"whether a {one} is in"
    told = f"The promise protects {what}{'' if replaced else ' the table at all'}. "
    if privacy.about_persons:
        told += escape(_sentence(privacy.about_persons)) + " "
    told += escape(_sentence(privacy.about_weight))
    told += (
        " The sum of weights is not published; scores were divided by the public number "
        f"{privacy.rows:,}."
    )
    if not replaced:
        told += (
            f" For replacing a {one}, which is another promise, the same run costs "
            f"ε = {four_digits(privacy.replacement[privacy.accountant])}."
        )
    return told


def _of_persons(privacy: PrivacyStatement) -> str:
    replaced = privacy.neighbours is Neighbours.REPLACE_ONE
    what = "what is said of one person" if replaced else "whether a person is in the table at all"
    told = f"The promise protects {what}: {escape(privacy.about_persons)}. "
    if privacy.unit.size_is_public:
        return told + f"The number of persons, {privacy.rows:,}, is public."
    counted = "persons" if privacy.persons and privacy.persons.weigh is Weigh.PERSON else "records"
    told += (
        f"The number of {counted} is not published; scores were divided by the public number "
        f"{privacy.rows:,}."
    )
    if not replaced:
        told += (
            " For replacing a person, which is another promise, the same run costs "
            f"ε = {four_digits(privacy.replacement[privacy.accountant])}."
        )
    return told


GROUP_COSTS = {
    "pure": ("ε", "g·ε"),
    "zcdp": ("ρ", "g²·ρ"),
    "gaussian": ("μ", "g·μ"),
}
"""By accountant, the figure that grows with the number g of records, and how it grows."""


def _groups(privacy: PrivacyStatement) -> str:
    """ε for several records together."""
    if not privacy.groups:
        return ""
    symbol, rule = GROUP_COSTS.get(privacy.accountant, ("", "every range times g"))
    shown = symbol in ("ρ", "μ")
    rows = []
    for size, value in privacy.groups.items():
        own = privacy.mu * size if symbol == "μ" else privacy.rho * size**2
        extra = f'<td class="number">{four_digits(own)}</td>' if shown else ""
        rows.append(
            f'<tr><th scope="row" class="number">{size}</th>{extra}'
            f'<td class="number">{four_digits(value)}</td></tr>'
        )
    head = f'<th scope="col" class="number">{rule}</th>' if shown else ""
    delta = "0" if privacy.accountant == "pure" else rounded_up(privacy.delta)
    return (
        '<table class="plain"><caption>The promise for g records together, by the '
        f"{escape(privacy.accountant)} accountant ({rule})</caption><thead><tr>"
        f'<th scope="col" class="number">g</th>{head}'
        f'<th scope="col" class="number">ε at δ = {delta}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _by_accountant(privacy: PrivacyStatement) -> str:
    both = bool(privacy.replacement)
    rows = []
    for name in privacy.by_accountant:
        delta = "0" if name == "pure" else rounded_up(privacy.delta)
        chosen = name == privacy.accountant
        mark = " (stated above)" if chosen else ""
        extra = (
            f'<td class="number">{privacy.shown_replaced(name)}</td>'
            if both and name in privacy.replacement
            else ""
        )
        rows.append(
            f"<tr{' class=chosen' if chosen else ''}>"
            f'<th scope="row">{escape(name)}{mark}</th>'
            f'<td class="number">{privacy.shown(name)}</td>{extra}<td class="number">{delta}</td>'
            f"<td>{escape(ACCOUNTANTS.get(name, ''))}</td></tr>"
        )
    heads = '<th scope="col" class="number">ε</th>'
    if both:
        heads = (
            '<th scope="col" class="number">ε, add-remove</th>'
            '<th scope="col" class="number">ε, replaced</th>'
        )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table: accountants">'
        '<table class="plain"><caption>The same run by every accountant; all are upper bounds'
        f'</caption><thead><tr><th scope="col">accountant</th>{heads}'
        '<th scope="col" class="number">δ</th><th scope="col">how it counts</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<p>The run is μ-GDP for μ = {four_digits(privacy.mu)} and ρ-zCDP for ρ = "
        f"{four_digits(privacy.rho)}. Over several releases of one table μ² adds up, and so does "
        "ρ.</p>"
    )


def parameter_table(parameters: Json) -> str:
    """Every parameter that applies, with its meaning."""
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(str(name))}</code></th>'
        f"<td>{escape(_shown(value, str(name)))}</td>"
        f'<td class="muted">{escape(PARAMETERS.get(str(name), ""))}</td></tr>'
        for name, value in parameters.items()
        # a parameter that does not apply is left out
        if (value is not None and value != []) or name == "seed"
    )
    return (
        '<table class="plain stacked"><thead><tr><th scope="col">name</th>'
        '<th scope="col">value</th><th scope="col">meaning</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _shown(value: object, name: str = "") -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if name == "known" and isinstance(value, list):
        return "; ".join(str(total["text"]) for total in value)
    if isinstance(value, list):
        return "; ".join(_shown(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    if isinstance(value, float):
        return rounded_up(value) if name in ("epsilon", "delta") else f"{value:g}"
    return str(value)
