"""The data behind the explorer, as JSON that may stand inside a script element."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable

import numpy as np

from dualquery.base.stored import Json
from dualquery.domain.attributes import Attribute
from dualquery.model.pair_kinds import APART
from dualquery.model.standard_errors import LEVELS
from dualquery.release.components import Components
from dualquery.release.page.first import first_question
from dualquery.release.page.inside import numbers_of, packed
from dualquery.release.published import Published
from dualquery.release.table_schema import table_schema

MOST_BYTES = 4_400_000
"""The most bytes of the explorer's data, so that the page stays below 5 MB."""

MOST_DESCRIBED = 500
"""The most columns that the page can also describe for data portals."""


def payload(release: Published, components: Components, digest: str = "") -> Json:
    """What the page needs to answer any question on the attributes it covers.

    Args:
        release: the release.
        components: what it answers from.
        digest: of the file with everything that was drawn and measured, if there is one.
    """
    covered = _covered(release, components)
    attributes = release.schema.attributes
    drawn = release.times_drawn[covered]
    names_rows = release.privacy.unit.size_is_public
    return {
        "attributes": [described(release, attributes[a]) for a in covered],
        "total": len(attributes),
        "kind": components.kind,
        "components": len(components.weights),
        "weights": packed(components.weights),
        "data": _text(components.packed(covered)),
        "edges": _edges(release, covered),
        "known": _text(np.packbits(release.actions.named[covered], bitorder="little").tobytes()),
        "drawn": _text(np.packbits(drawn > 0, bitorder="little").tobytes()),
        "first": first_question(release, components, covered),
        "rows": release.privacy.rows if names_rows else None,
        "people": people(release),
        "source": source(release, digest),
        "description": _description(release),
        "uncertainty": _uncertainty(release),
        "together": _together(release, covered),
    }


def _description(release: Published) -> Json | None:
    """The columns as a Table Schema; None if they are too many for a page."""
    if len(release.schema) > MOST_DESCRIBED:
        return None
    return table_schema(release)


def _edges(release: Published, covered: list[int]) -> Json | None:
    """What joins attributes, by their places on the page; None for a model without edges."""
    edges = None if release.model is None else release.model.edges
    if edges is None:
        return None
    place = {a: i for i, a in enumerate(covered)}
    trees = edges.trees
    ties: list[str | None] = []
    for a in covered:
        e = int(trees.edge[a])
        block = None if e < 0 else edges.ties[:, edges.start[e] : edges.start[e + 1]]
        ties.append(None if block is None else packed(block))
    return {
        "parent": [place[int(p)] if p >= 0 else -1 for p in trees.parent[covered]],
        "groups": [edges.groups.of_attribute(a).tolist() for a in covered],
        "ties": ties,
        "fit": edges.fit.tolist(),
    }


def _uncertainty(release: Published) -> Json | None:
    """The logarithm of the standard error, by the logarithm of an answer's distance from 0 or 1.

    Per kind of pair (`model.pair_kinds`) there is one row for queries of one literal, one for
    queries of two, and so on; the last row is for all longer ones. The page interpolates between
    the places. `missed` is the standard error of a dependence of each kind. `unasked` has factors
    of conjunctions and of parities. None if the release knows no standard errors, because a page
    never guesses.
    """
    errors = release.errors
    if errors is None or not np.all(np.isfinite(errors.scale)):
        return None
    places = np.log(np.sqrt(np.maximum(LEVELS[:-1], 3e-5) * LEVELS[1:]))
    return {
        "places": places.tolist(),
        "rows": np.log(errors.scale).tolist(),
        "missed": errors.missed.tolist(),
        "unasked": errors.unasked.tolist(),
    }


def _together(release: Published, covered: list[int]) -> str | None:
    """One bit per pair of columns: whether they were measured together or an edge joins them.

    None if the release does not tell pairs apart.
    """
    found = release.pair_kinds.among(covered)
    return _text(np.packbits(found != APART, bitorder="little").tobytes()) if len(found) else None


def _covered(release: Published, components: Components) -> list[int]:
    """All attributes, or, if the page would get too large, those that the draws named most."""
    positions = range(len(release.schema))
    kept = _within(release, components, positions)
    if len(kept) < len(positions):
        kept = sorted(_within(release, components, map(int, release.most_drawn)))
        edges = None if release.model is None else release.model.edges
        if edges is not None:  # of a tree that does not fit, nothing is shown
            missing = set(edges.trees.root[sorted(set(positions) - set(kept))].tolist())
            kept = [a for a in kept if int(edges.trees.root[a]) not in missing]
    return kept


def _within(release: Published, components: Components, attributes: Iterable[int]) -> list[int]:
    """The leading attributes that fit, with their tables in base64 and their names and values."""
    kept, size = [], 0.0
    for position in attributes:
        entry = describe(release.schema.attributes[position])
        words = len(entry) + 3 if isinstance(entry, str) else len(script_json(entry)) + 1
        size += components.packed_size(position) * 4 / 3 + words
        if size > MOST_BYTES:
            break
        kept.append(position)
    return kept


def described(release: Published, attribute: Attribute) -> str | Json:
    """An attribute, with what the page needs for its means and quantiles."""
    entry = describe(attribute)
    numbers = False if isinstance(entry, str) else numbers_of(release, attribute)
    return {**entry, "numbers": numbers} if numbers and not isinstance(entry, str) else entry


def describe(attribute: Attribute) -> str | Json:
    """An attribute in few bytes; a 0/1 column of which nothing is said is only its name."""
    said = words_of(attribute)
    if attribute.is_binary:
        return {"name": attribute.name, "binary": True, **said} if said else attribute.name
    entry: Json = {"name": attribute.name, **said}
    if attribute.values == (0, 1):
        entry["yes_no"] = True
    if attribute.is_numeric:
        if attribute.type.is_temporal:
            entry["temporal"] = True
        entry["edges"] = edge_texts(attribute)
    else:
        entry["values"] = value_texts(attribute)
    if attribute.missing:
        entry["missing"] = True
    if attribute.ordered:
        entry["ordered"] = True
    if attribute.group is not None:
        number = {name: i for i, name in enumerate(attribute.group.names)}
        entry["groups"] = list(number)
        entry["group_of"] = [number[parent] for parent in attribute.group.parents]
    return entry


def words_of(attribute: Attribute) -> Json:
    """What readers call the column and its values, as far as somebody said it."""
    said: Json = {}
    if attribute.heading != attribute.name:
        said["label"] = attribute.heading
    if attribute.meaning.unit:
        said["unit"] = attribute.meaning.unit
    words = {code: attribute.words_for(code) for code in range(len(attribute.values))}
    if any(words.values()) and attribute.meaning.labels:
        said["words"] = {code: text for code, text in words.items() if text}
    return said


def people(release: Published) -> str:
    """What the rows of the table are, in the curator's words."""
    return release.about.records or ("people" if release.privacy.persons else "records")


def source(release: Published, digest: str) -> str:
    """Where a figure of this release comes from, to stand below it.

    Args:
        release: the release.
        digest: of what was drawn and measured; empty if it is not known.
    """
    cited = release.citation.removesuffix(".")
    date = release.about.date
    made = f" Published {date}." if date and date not in cited else ""
    return f"{cited}.{made}{f' SHA-256 of the release: {digest[:16]}.' if digest else ''}"


def edge_texts(attribute: Attribute) -> list[str]:
    """Edges as the query language writes them."""
    return [attribute.spell(edge) for edge in attribute.edges]


def value_texts(attribute: Attribute) -> list[str]:
    """Values as the query language writes them, before quoting."""
    if attribute.values == (0, 1):  # a column of booleans is stored as 0/1
        return ["0", "1"]
    return [str(value) for value in attribute.values]


def value_words(attribute: Attribute) -> list[str]:
    """What each code is called, for people: its label, yes or no, a range, or the value itself."""
    if attribute.is_numeric:
        edges = [grouped(edge) for edge in edge_texts(attribute)]
        last = len(edges) - 2
        labels = [  # on one line: the spaces do not break
            f"{edges[i]}\u00a0to\u00a0{'' if i == last else '<'}{edges[i + 1]}"
            for i in range(last + 1)
        ]
    else:
        plain = ["no", "yes"] if attribute.values == (0, 1) else value_texts(attribute)
        labels = [attribute.words_for(code) or text for code, text in enumerate(plain)]
    return [*labels, "missing"] if attribute.missing else labels


_LONG = re.compile(r"(-?)(\d{5,})(\.\d+)?")


def grouped(text: str) -> str:
    """A long number with commas; years, dates and short numbers as they are."""
    found = _LONG.fullmatch(text)
    return text if found is None else f"{found[1]}{int(found[2]):,}{found[3] or ''}"


def script_json(content: object) -> str:
    """JSON without the characters that could end the script element around it."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
