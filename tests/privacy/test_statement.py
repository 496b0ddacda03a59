from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dualquery.errors import ParameterError
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.statement import NOT_PRIVATE, PrivacyStatement, figure

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
    first, second, third = statement(accountant="zcdp").text().splitlines()
    assert first == "ε = 0.3115 at δ = 1e-06, replace-one neighbours, zcdp accountant"
    assert "gaussian 0.2872" in second
    assert "zcdp" not in second
    assert "30162 records, a public number" in third


def test_pure_holds_without_delta() -> None:
    assert statement(accountant="pure").text().startswith("ε = 15.92 at δ = 0, replace-one")


def test_add_remove_says_what_is_not_published_and_what_replacement_costs() -> None:
    made = statement(Neighbours.ADD_REMOVE)
    assert "the number of records is not published" in made.text()
    assert made.replacement["gaussian"] == pytest.approx(statement().epsilon, rel=1e-6)
    assert f"ε = {figure(made.replacement['gaussian'])}" in made.text().splitlines()[-1]
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
    [(0.28711, "0.2872"), (1.0 + 1e-12, "1"), (15.914, "15.92"), (0.0, "0"), (122.11, "122.2"),
     (1e-6, "1e-06"), (0.999901, "1")],
)  # fmt: skip
def test_figures_are_rounded_up(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_pure_privacy_at_delta_zero() -> None:
    events = Events.of([0.0, 2.0], 5, 100)
    statement = PrivacyStatement.of(events, delta=0.0, rows=100, accountant="pure")
    assert statement.epsilon == pytest.approx(0.2)
    assert statement.by_accountant["gaussian"] == math.inf
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    with pytest.raises(ParameterError, match="delta"):
        PrivacyStatement.of(events, delta=0.0, rows=100, accountant="gaussian")
