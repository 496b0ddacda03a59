from __future__ import annotations

import json
import math
from statistics import NormalDist

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.accountants.gaussian import epsilon_of_mu, mu_of
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.statement import NOT_PRIVATE, PrivacyStatement, four_digits, weak_promises

ADULT = record_player_temperatures(2.0, 16)


def statement(unit: Neighbours = Neighbours.REPLACE_ONE, **options: object) -> PrivacyStatement:
    events = Events.of(ADULT, 1000, 30162, unit)
    return PrivacyStatement.of(events, delta=1e-6, rows=30162, neighbours=unit, **options)  # type: ignore[arg-type]


def test_all_accountants_stand_beside_the_chosen_one() -> None:
    made = statement(accountant="zcdp")
    assert made.epsilon == made.by_accountant["zcdp"]
    assert list(made.by_accountant) == list(ACCOUNTANTS)
    assert made.by_accountant["gaussian"] == pytest.approx(0.287, abs=5e-4)
    assert made.mu == pytest.approx(0.07387, abs=1e-5)


def test_text_names_the_chosen_accountant_first_and_the_neighbours() -> None:
    first, second, third, fourth, fifth = statement(accountant="zcdp").text().splitlines()
    assert first == "ε = 0.3115 at δ = 1e-06, replace-one neighbours, zcdp accountant"
    assert "gaussian 0.2872" in second
    assert "zcdp" not in second
    assert "30162 records, a public number" in third
    assert "is not δ but at most 0.0001595" in fourth
    assert fifth.startswith(
        "for several records of one person together, at the same δ: ε = 0.6511 for 2"
    )


def test_pure_holds_without_delta() -> None:
    assert statement(accountant="pure").text().startswith("ε = 15.92 at δ = 0, replace-one")


def test_add_remove_says_what_is_not_published_and_what_replacement_costs() -> None:
    made = statement(Neighbours.ADD_REMOVE)
    assert "the number of records is not published" in made.text()
    assert made.replacement["gaussian"] == pytest.approx(statement().epsilon, rel=1e-6)
    assert f"ε = {four_digits(made.replacement['gaussian'])}" in made.text().splitlines()[3]
    assert statement().replacement == {}


def test_names_read_off_the_header_are_not_covered() -> None:
    made = statement(public_header=("icd_*", "atc_*"))
    assert "match 'icd_*', 'atc_*' were read off the table's header" in made.text()
    assert made.to_dict()["public_header"] == ["icd_*", "atc_*"]
    assert PrivacyStatement.from_dict(made.to_dict()) == made
    assert "header" not in statement().text()
    assert statement().to_dict()["public_header"] == []


def test_a_seeded_run_is_stamped_first() -> None:
    made = statement(private=False)
    assert made.stamp == NOT_PRIVATE
    assert made.text().startswith(NOT_PRIVATE)
    assert made.to_dict()["stamp"] == NOT_PRIVATE
    assert statement().stamp == ""


@pytest.mark.parametrize("unit", list(Neighbours))
@pytest.mark.parametrize("private", [True, False])
def test_json_both_ways(unit: Neighbours, private: bool) -> None:
    made = statement(unit, private=private)
    assert PrivacyStatement.from_json(made.to_json()) == made


def test_json_has_no_infinities() -> None:
    made = PrivacyStatement.of(
        Events(np.array([1]), np.array([1000.0])), delta=1e-6, rows=1, accountant="gaussian"
    )
    assert json.loads(made.to_json())["by_accountant"]["advanced"] is None
    assert PrivacyStatement.from_json(made.to_json()).by_accountant["advanced"] == math.inf


def test_other_json_is_refused() -> None:
    with pytest.raises(ParameterError, match="not a privacy statement"):
        PrivacyStatement.from_dict({"epsilon": 1.0})


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.28711, "0.2872"), (1.0 + 1e-12, "1.001"), (1.0, "1"), (0.1, "0.1"),
     (15.914, "15.92"), (0.0, "0"), (122.11, "122.2"),
     (1e-6, "1e-06"), (0.999901, "1")],
)  # fmt: skip
def test_figures_are_rounded_up(value: float, shown: str) -> None:
    assert four_digits(value) == shown


def test_pure_privacy_at_delta_zero() -> None:
    events = Events.of([0.0, 2.0], 5, 100)
    statement = PrivacyStatement.of(events, delta=0.0, rows=100, accountant="pure")
    assert statement.epsilon == pytest.approx(0.2)
    assert statement.by_accountant["gaussian"] == math.inf
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    with pytest.raises(ParameterError, match="delta"):
        PrivacyStatement.of(events, delta=0.0, rows=100, accountant="gaussian")


# What δ does not say, by accountant.


def test_every_accountant_says_how_often_the_bound_may_be_exceeded() -> None:
    assert "ever more than e^ε times" in statement(accountant="pure").about_delta
    assert statement(accountant="pure").exceeds == 0.0
    for name in ("advanced", "per-round"):
        made = statement(accountant=name)
        assert made.exceeds == pytest.approx(1e-6, rel=1e-6)
        assert made.about_delta.endswith("is at most δ = 1e-06")
    for name in ("zcdp", "gaussian"):
        made = statement(accountant=name)
        assert made.exceeds is not None
        assert made.exceeds > 20 * made.delta
        assert f"is not δ but at most {four_digits(made.exceeds)}" in made.about_delta


def test_the_gaussian_statement_gives_the_figure_of_the_measurement() -> None:
    made = statement()
    chance = NormalDist().cdf(-made.epsilon / made.mu + made.mu / 2)
    assert f"Φ(−ε/μ + μ/2) = {four_digits(chance)}" in made.about_delta


@pytest.mark.parametrize("name", list(ACCOUNTANTS))
def test_groups_are_those_of_the_accountant(name: str) -> None:
    """gμ, g²ρ, gε, and the same theorem at g times the range."""
    made = statement(accountant=name)
    assert list(made.groups) == [1, 2, 5, 10]
    assert made.groups[1] == made.epsilon
    for size, value in made.groups.items():
        if name == "gaussian":
            assert value == pytest.approx(epsilon_of_mu(size * made.mu, 1e-6), rel=1e-9)
        if name == "pure":
            assert value == pytest.approx(size * made.epsilon, rel=1e-12)
        if name == "zcdp":
            assert value == pytest.approx(_epsilon_of_rho(size**2 * made.rho), rel=1e-9)
        # g steps of (ε, δ)-privacy are (g·ε, …)-private with a far larger δ. So at the same δ, ε
        # is larger.
        assert value >= size * made.epsilon * (1.0 - 1e-9)
        assert four_digits(value) in made.about_groups or size == 1


def _epsilon_of_rho(rho: float) -> float:
    ranges = np.array([math.sqrt(8.0 * rho)])
    return ACCOUNTANTS["zcdp"].epsilon(Events(np.array([1]), ranges), 1e-6)


def test_group_figures_of_reference() -> None:
    """ε = 1, δ = 10⁻³: ×2.3 for 2 records, ×7.3 for 5, ×18.8 for 10."""
    draws = 999
    ranges = np.array([2.0 * mu_of(1.0, 1e-3) / math.sqrt(draws + 1)])
    made = PrivacyStatement.of(Events(np.array([draws]), ranges), delta=1e-3, rows=100)
    assert [f"{value:.1f}" for value in made.groups.values()] == ["1.0", "2.3", "7.3", "18.8"]


def test_weak_promises_are_said() -> None:
    assert statement().warnings == ()
    assert weak_promises(10.0, 1e-6, 1000, "gaussian") == ()
    assert weak_promises(1.0, 0.000999, 1000, "gaussian") == ()
    (large,) = weak_promises(10.001, 1e-6, 1000, "gaussian")
    assert large.startswith("ε = 10.01 is above 10")
    (likely,) = weak_promises(1.0, 1e-3, 1000, "gaussian")
    assert likely.startswith("δ = 0.001 is not below 1/1000")
    assert weak_promises(1.0, 0.3, 1000, "pure") == ()
    made = statement(accountant="pure")
    assert made.text().splitlines()[-1] == f"warning: {made.warnings[0]}"
    assert "warning" not in made.text(warnings=False)
    assert made.to_dict()["warnings"] == list(made.warnings)
