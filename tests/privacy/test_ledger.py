"""The ledger: composition, refusal, two processes at once, and a process that is killed."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.accountants.gaussian import epsilon_of_mu, mu_of
from dualquery.privacy.events import Events, MeasurementEvent, record_player_temperatures
from dualquery.privacy.ledger import BudgetExceededError, Charge, Ledger, LedgerError, Turns
from dualquery.privacy.neighbours import Neighbours

UNIT = Neighbours.REPLACE_ONE
RUN = Events.of(record_player_temperatures(2.0, 16), 1000, 30162)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Without slack, so that every ε is stated at the δ of the ledger."""
    return Ledger.create(tmp_path / "adult.db", epsilon=0.5, delta=1e-6, slack=0, label="adult")


def test_a_new_ledger_has_spent_nothing(ledger: Ledger) -> None:
    account = ledger.account()
    assert (account.label, account.spent, account.left, account.entries) == ("adult", 0.0, 0.5, ())


def test_releases_compose_by_mu_squared(ledger: Ledger) -> None:
    ledger.reserve("a", RUN, neighbours=UNIT)
    account = ledger.reserve("b", RUN, neighbours=UNIT, note="second")
    both = ACCOUNTANTS["gaussian"].epsilon(RUN.then(RUN), 1e-6)
    assert account.spent == pytest.approx(both, rel=1e-9)
    assert account.spent < 2 * ACCOUNTANTS["gaussian"].epsilon(RUN, 1e-6)
    assert [entry.note for entry in account.entries] == ["", "second"]


def test_pure_counts_where_it_is_smaller() -> None:
    few = Events(np.array([1]), np.array([0.01]))
    assert Charge.of(few).epsilon(1e-12) == ACCOUNTANTS["pure"].epsilon(few, 0.0)
    assert Charge.of(RUN).epsilon(1e-6) == ACCOUNTANTS["gaussian"].epsilon(RUN, 1e-6)


def test_a_release_past_the_total_is_refused_with_all_three_figures(ledger: Ledger) -> None:
    ledger.reserve("a", RUN, neighbours=UNIT)
    ledger.reserve("b", RUN, neighbours=UNIT)
    with pytest.raises(BudgetExceededError, match=r"spent ε=0\.41.*asked ε=0\.287.*total ε=0\.5"):
        ledger.reserve("c", RUN, neighbours=UNIT)
    assert len(ledger.account().entries) == 2


def test_a_budget_of_exactly_the_cost_is_enough(tmp_path: Path) -> None:
    cost = ACCOUNTANTS["gaussian"].epsilon(RUN, 1e-6)
    exact = Ledger.create(tmp_path / "exact.db", epsilon=cost, delta=1e-6, slack=0)
    assert exact.reserve("a", RUN, neighbours=UNIT).left == 0.0


def test_a_reserved_release_resumes_without_being_charged_twice(ledger: Ledger) -> None:
    once = ledger.reserve("a", RUN, neighbours=UNIT)
    assert Ledger(ledger.path).reserve("a", RUN, neighbours=UNIT) == once
    spent = ledger.spend("a")
    assert spent.spent == once.spent
    assert [entry.state for entry in spent.entries] == ["spent"]
    assert ledger.spend("a") == spent


def test_an_id_cannot_be_used_for_something_else(ledger: Ledger) -> None:
    ledger.reserve("a", RUN, neighbours=UNIT)
    with pytest.raises(LedgerError, match="cannot resume"):
        ledger.reserve("a", RUN.then(RUN), neighbours=UNIT)
    ledger.spend("a")
    with pytest.raises(LedgerError, match="needs a new id"):
        ledger.reserve("a", RUN, neighbours=UNIT)
    with pytest.raises(LedgerError, match="no release b"):
        ledger.spend("b")
    with pytest.raises(ParameterError, match="release = ''"):
        ledger.reserve("", RUN, neighbours=UNIT)


def test_other_neighbours_and_seeded_runs_are_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="add-remove"):
        ledger.reserve("a", RUN, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(LedgerError, match="NOT PRIVATE"):
        ledger.reserve("a", RUN, neighbours=UNIT, private=False)
    assert ledger.account().entries == ()


def test_a_budget_is_declared_once(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="declared once"):
        Ledger.create(ledger.path, epsilon=100.0, delta=1e-6)
    assert ledger.account().epsilon == 0.5


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"Ledger\.create"):
        Ledger(tmp_path / "missing.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to look at\n" * 40)
    with pytest.raises(LedgerError, match=r"text\.db"):
        Ledger(tmp_path / "text.db")
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE budget (x)")
    connection.close()
    with pytest.raises(LedgerError, match="not a dualquery ledger"):
        Ledger(tmp_path / "other.db")
    with pytest.raises(LedgerError, match="cannot create"):
        Ledger.create(tmp_path / "no" / "such.db", epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_bad_budget_is_named_and_leaves_no_file(tmp_path: Path, name: str, bad: float) -> None:
    values = {"epsilon": 1.0, "delta": 1e-6, name: bad}
    with pytest.raises(ParameterError, match=f"{name} = {bad:g}"):
        Ledger.create(tmp_path / "bad.db", **values)
    assert not (tmp_path / "bad.db").exists()


PRELUDE = """
import sys, os, signal
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.ledger import Ledger, LedgerError
from dualquery.privacy.neighbours import Neighbours
path, name = sys.argv[1:]
ledger = Ledger(path)
run = Events.of(record_player_temperatures(2.0, 16), 1000, 30162)
"""


def process(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


RACES, RACERS = 40, 3


def race(barrier: Barrier, folder: Path, name: str) -> None:
    """Reserve in one ledger after the other, each at the same moment as all other racers."""
    for number in range(RACES):
        ledger = Ledger(folder / f"{number}.db")
        barrier.wait(60)
        with suppress(BudgetExceededError):
            ledger.reserve(name, RUN, neighbours=UNIT)


def test_processes_inside_reserve_at_once_never_pass_the_total(tmp_path: Path) -> None:
    """Three processes enter `reserve` together, ledger after ledger; each has room for one."""
    for number in range(RACES):
        Ledger.create(tmp_path / f"{number}.db", epsilon=0.3, delta=1e-6)
    spawning = get_context("spawn")
    barrier = spawning.Barrier(RACERS)
    racers = [
        spawning.Process(target=race, args=(barrier, tmp_path, f"release-{k}"))
        for k in range(RACERS)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [racer.exitcode for racer in racers] == [0] * RACERS
    accounts = [Ledger(tmp_path / f"{number}.db").account() for number in range(RACES)]
    assert [len(account.entries) for account in accounts] == [1] * RACES
    assert max(account.spent for account in accounts) <= 0.3
    # They did run at once: no racer was first everywhere.
    assert len({account.entries[0].release for account in accounts}) > 1


def test_killed_between_reservation_and_release_counts_as_spent(ledger: Ledger) -> None:
    killed = process(
        """
        ledger.reserve(name, run, neighbours=Neighbours.REPLACE_ONE)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(ledger.path),
        "a",
    )
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    account = ledger.account()
    assert [entry.state for entry in account.entries] == ["reserved"]
    assert account.spent == ACCOUNTANTS["gaussian"].epsilon(RUN, 1e-6)
    assert ledger.reserve("a", RUN, neighbours=UNIT) == account


def test_killed_inside_a_transaction_leaves_the_ledger_as_it_was(ledger: Ledger) -> None:
    ledger.reserve("a", RUN, neighbours=UNIT)
    killed = process(
        """
        with ledger._writing() as page:
            page.append({"kind": "reserved", "release": name, "note": "", "mu_squared": 1.0,
                         "pure": 1.0, "slack": 0.0, "at": "", "begins": ""})
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(ledger.path),
        "b",
    )
    killed.communicate()
    assert [entry.release for entry in ledger.account().entries] == ["a"]
    ledger.reserve("c", RUN, neighbours=UNIT)


def test_figures_for_json(ledger: Ledger) -> None:
    ledger.reserve("a", RUN, neighbours=UNIT)
    figures = json.loads(json.dumps(ledger.account().to_dict()))
    assert figures["total"] == 0.5
    assert figures["releases"][0]["state"] == "reserved"
    assert figures["spent"] + figures["left"] == pytest.approx(0.5)


@pytest.mark.parametrize("slack", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("shares", [(0.5, 0.4999), (0.5, 0.5001), (0.3, 0.3, 0.3999), (1.0001,)])
def test_the_rule_is_the_one_proved(tmp_path, shares: tuple[float, ...], slack: float) -> None:
    """Σ μ² against B, √B the μ that the total allows; `docs/proofs/composition.md`, the filter."""
    allowed = mu_of(1.0, 1e-6 * (1.0 - slack)) ** 2
    ledger = Ledger.create(tmp_path / "book", epsilon=1.0, delta=1e-6, slack=slack)
    spent = 0.0
    for number, share in enumerate(shares):
        # 9999 draws: μ² = ¼·10⁴·r², and a pure ε far above the total.
        events = Events(np.array([9999]), np.array([2.0 * math.sqrt(share * allowed) / 100.0]))
        spent += events.mu_squared
        if spent <= allowed:
            ledger.reserve(f"r{number}", events, neighbours=Neighbours.REPLACE_ONE)
        else:
            with pytest.raises(BudgetExceededError):
                ledger.reserve(f"r{number}", events, neighbours=Neighbours.REPLACE_ONE)


def test_chances_of_failing_add_up_within_the_share_that_was_declared(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-6, slack=0.6)
    measured = Events.of_measurements(MeasurementEvent.gaussian(20.0))
    before = book.account().rule
    for name in ("one", "two"):
        book.reserve(name, measured, neighbours=Neighbours.REPLACE_ONE, slack=3e-7)
    account = Ledger(tmp_path / "l").account()
    assert account.rule == before
    assert account.charge.slack == pytest.approx(6e-7)
    mu = math.sqrt(2 * measured.mu_squared)
    assert account.spent == pytest.approx(epsilon_of_mu(mu, 4e-7), rel=1e-9)
    assert account.spent >= epsilon_of_mu(mu, 4e-7)
    with pytest.raises(BudgetExceededError, match=r"δ'=6\.1e-07 .* δ'=6e-07 .*smaller delta"):
        book.reserve("three", measured, neighbours=Neighbours.REPLACE_ONE, slack=1e-8)
    book.reserve("four", measured, neighbours=Neighbours.REPLACE_ONE)


def test_what_is_kept_for_slack_is_a_tenth_or_what_is_declared(tmp_path: Path) -> None:
    tenth = Ledger.create(tmp_path / "tenth", epsilon=1.0, delta=1e-6).account()
    assert tenth.rule.slack == pytest.approx(1e-7)
    assert tenth.rule.delta_of_losses == pytest.approx(9e-7)
    none = Ledger.create(tmp_path / "none", epsilon=1.0, delta=1e-6, slack=0)
    assert none.account().rule.delta_of_losses == 1e-6
    with pytest.raises(BudgetExceededError, match="smaller delta"):
        none.reserve("a", RUN, neighbours=UNIT, slack=1e-12)
    for bad in (-0.1, 0.91, math.nan):
        with pytest.raises(ParameterError, match="slack = "):
            Ledger.create(tmp_path / "bad", epsilon=1.0, delta=1e-6, slack=bad)
        assert not (tmp_path / "bad").exists()


def test_a_round_is_drawn_under_the_key_that_it_began_with(ledger: Ledger) -> None:
    turns = Turns(ledger, "a")
    ledger.reserve("a", RUN, neighbours=UNIT, begins=turns.begins)
    other = Turns(ledger, "a")
    with pytest.raises(LedgerError, match="went on elsewhere"):
        other.drawn(1, "d1")  # it never began
    ledger.reserve("a", RUN, neighbours=UNIT, begins=other.begins)  # resumed from a copy
    with pytest.raises(LedgerError, match="went on elsewhere"):
        turns.drawn(1, "d1")
    first, key = other.drawn(1, "d1"), ledger.openings("a", None)[0].key
    assert other.key != key
    assert ledger.account().mark == first
    with pytest.raises(LedgerError, match="cannot draw round 3"):
        other.drawn(3, "d3")
    with pytest.raises(LedgerError, match="cannot resume from 0 rounds: the ledger saw 1"):
        ledger.reserve("a", RUN, neighbours=UNIT)
    for wrong in (["d0"], ["d1", "d2"]):
        with pytest.raises(LedgerError, match="are not the ones the ledger saw"):
            ledger.reserve("a", RUN, neighbours=UNIT, drawn=wrong)
    assert ledger.reserve("a", RUN, neighbours=UNIT, drawn=["d1"]).entries[0].resumed == 1
    ledger.spend("a")
    with pytest.raises(LedgerError, match="1 drawn, spent"):
        other.drawn(2, "d2")
    with pytest.raises(LedgerError, match="has never seen it"):
        ledger.reserve("b", RUN, neighbours=UNIT, drawn=["d1"])


def test_two_ledgers_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    here = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-6)
    there = Ledger.create(tmp_path / "one" / "l", epsilon=1.0, delta=1e-6)
    assert here.fingerprint != there.fingerprint
    mark = there.account().mark
    assert mark is not None
    with pytest.raises(LedgerError, match="charged to another ledger"):
        here.check(mark, "a release")
