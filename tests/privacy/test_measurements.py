"""Measured counts as events: their price by every accountant, against exact distributions."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants import (
    ACCOUNTANTS,
    NotCoveredError,
    epsilon_by_accountant,
    not_covering,
)
from dualquery.privacy.accountants.gaussian import delta_of_mu
from dualquery.privacy.accountants.zcdp import epsilon_of_rho, rho_of
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import DrawEvent, Events, MeasurementEvent, Noise
from dualquery.privacy.ledger import BudgetExceededError, Charge, Ledger, LedgerError
from dualquery.privacy.measuring import batch_event
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.scales import scale_for, sigma_for, sigma_for_rho
from dualquery.privacy.statement import NOT_COVERED, PrivacyStatement
from dualquery.workloads.marginals import Groups, Marginals

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
BOUNDED = ["pure", "advanced", "per-round"]
DRAWS = Events.of([0.0, 2.0, 4.0], 5, 100)


def gaussian(sigma: float, neighbours: Neighbours = REPLACE) -> Events:
    return Events.of_measurements(MeasurementEvent.gaussian(sigma, neighbours))


def laplace(scale: float, neighbours: Neighbours = REPLACE) -> Events:
    return Events.of_measurements(MeasurementEvent.laplace(scale, neighbours))


# Exact distributions on a small universe


def tables(records: int, cells: int) -> list[tuple[int, ...]]:
    """Every vector of counts of so many records."""
    return [
        counts
        for counts in itertools.product(range(records + 1), repeat=cells)
        if sum(counts) == records
    ]


def neighbouring(
    records: int, cells: int, neighbours: Neighbours
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every ordered pair of neighbours, found by moving, adding or removing one record."""
    others = records if neighbours is REPLACE else records + 1
    pairs = []
    for one in tables(records, cells):
        for other in tables(others, cells):
            moved = [b - a for a, b in zip(one, other, strict=True)]
            gained = sum(m for m in moved if m > 0)
            lost = -sum(m for m in moved if m < 0)
            if (gained, lost) == ((1, 1) if neighbours is REPLACE else (1, 0)):
                pairs += [(one, other), (other, one)]
    return pairs


def rounded_gaussian_masses(sigma: float, reach: int) -> NDArray[np.float64]:
    """P(Z = z) for |z| ≤ reach, from 40 digits."""
    with mpmath.workdps(40):
        s, half = mpmath.mpf(sigma), mpmath.mpf(1) / 2
        upper = [mpmath.ncdf(-(z - half) / s) for z in range(reach + 2)]
        masses = [upper[z] - upper[z + 1] for z in range(reach + 1)]
        return np.array([float(masses[abs(z)]) for z in range(-reach, reach + 1)])


def laplace_masses(scale: float, reach: int) -> NDArray[np.float64]:
    with mpmath.workdps(40):
        q = mpmath.exp(-1 / mpmath.mpf(scale))
        return np.array([float((1 - q) / (1 + q) * q ** abs(z)) for z in range(-reach, reach + 1)])


def release(masses: NDArray[np.float64], counts: tuple[int, ...], most: int) -> NDArray[np.float64]:
    """The distribution of the noisy counts, as an array over a box of outcomes."""
    joint = np.ones(())
    for count in counts:
        shifted = np.zeros(masses.size + most)
        shifted[count : count + masses.size] = masses
        joint = np.multiply.outer(joint, shifted)
    return joint


def worst(
    masses: NDArray[np.float64], records: int, cells: int, neighbours: Neighbours, epsilon: float
) -> float:
    """The largest hockey-stick divergence of all pairs of neighbours."""
    most = records + 1
    known = {
        counts: release(masses, counts, most)
        for size in (records, records + 1)
        for counts in tables(size, cells)
    }
    return max(
        float(np.sum(np.maximum(0.0, known[one] - math.exp(epsilon) * known[other])))
        for one, other in neighbouring(records, cells, neighbours)
    )


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    ("records", "cells", "sigma"),
    [(2, 2, 0.4), (3, 2, 1.0), (2, 2, 3.0), (3, 2, 10.0), (2, 3, 0.7), (3, 3, 1.5)],
)
def test_the_rounded_gaussian_mechanism_costs_what_its_event_says(
    records: int, cells: int, sigma: float, neighbours: Neighbours
) -> None:
    """All tables, all neighbours, all outcomes except a tail of less than 10⁻¹²."""
    masses = rounded_gaussian_masses(sigma, math.ceil(7.5 * sigma) + 1)
    event = gaussian(sigma, neighbours)
    mu = math.sqrt(event.mu_squared)
    tightest = 0.0
    for epsilon in np.linspace(0.0, 3.0 * mu + mu * mu / 2, 9):
        true = worst(masses, records, cells, neighbours, float(epsilon))
        claimed = ACCOUNTANTS["gaussian"].delta(event, float(epsilon))
        assert true <= claimed + 1e-12
        assert true <= ACCOUNTANTS["zcdp"].delta(event, float(epsilon)) + 1e-12
        tightest = max(tightest, true / claimed)
    if sigma >= 3.0:
        assert tightest > 0.99  # a μ or a Δ that is one per cent too small would be seen


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("scale", [0.5, 1.7, 6.0])
def test_the_discrete_laplace_mechanism_costs_what_its_event_says(
    scale: float, neighbours: Neighbours
) -> None:
    masses = laplace_masses(scale, math.ceil(32 * scale))
    event = laplace(scale, neighbours)
    whole = ACCOUNTANTS["pure"].epsilon(event, 0.0)
    assert whole == pytest.approx(neighbours.table_l1 / scale)
    for epsilon in np.linspace(0.0, 1.2 * whole, 9):
        true = worst(masses, 2, 2, neighbours, float(epsilon))
        for name, accountant in ACCOUNTANTS.items():
            assert true <= accountant.delta(event, float(epsilon)) + 1e-12, name
    assert worst(masses, 2, 2, neighbours, 0.97 * whole) > 1e-4  # no smaller pure ε holds


def counted(records: tuple[int, ...], batch: Marginals) -> NDArray[np.int64]:
    """The cells of all marginals over some records of {0,1}³, each given as a number."""
    codes = np.array([[r >> 2 & 1, r >> 1 & 1, r & 1] for r in records], dtype=np.int32)
    found = [
        np.bincount(batch.cell_of(t, codes.reshape(-1, 3)), minlength=int(size))
        for t, size in enumerate(np.diff(batch.start))
    ]
    return np.concatenate(found)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("arity", [1, 2, 3])
def test_a_batch_of_tables_costs_what_its_event_says(arity: int, neighbours: Neighbours) -> None:
    """All tables of two records over {0,1}³, all neighbours, through the package's own marginals.

    With Laplace noise in every cell the largest ratio of chances is exp(Δ₁/b), Δ₁ the L1 distance
    of the counts; with Gaussian noise μ is their L2 distance over σ.
    """
    schema = Schema([Attribute.binary(name) for name in "abc"])
    sets = np.array(list(itertools.combinations(range(3), arity)), dtype=np.int32)
    batch = Marginals(Groups.single(schema), sets)
    more = 2 if neighbours is REPLACE else 3
    largest_l1, largest_l2 = 0.0, 0.0
    for one in itertools.product(range(8), repeat=2):
        for other in itertools.product(range(8), repeat=more):
            if other[: more - 1] != one[: more - 1]:
                continue
            moved = counted(other, batch) - counted(one, batch)
            largest_l1 = max(largest_l1, float(np.abs(moved).sum()))
            largest_l2 = max(largest_l2, float(np.sqrt((moved**2).sum())))
    laplaced = batch_event(Noise.LAPLACE, 7.0, len(batch), neighbours)
    noisy = batch_event(Noise.GAUSSIAN, 7.0, len(batch), neighbours)
    pure = ACCOUNTANTS["pure"].epsilon(Events.of_measurements(laplaced), 0.0)
    assert pure == pytest.approx(largest_l1 / 7.0)
    assert math.sqrt(noisy.mu_squared) == pytest.approx(largest_l2 / 7.0)


# Accountants


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.1, 0.999, 1.0, 3.0, 40.0, 800.0])
def test_mu_of_laplace_noise_is_the_coins(epsilon: float) -> None:
    event = MeasurementEvent(Noise.LAPLACE, 1.0, epsilon, 1.0)
    with mpmath.workdps(400 if epsilon > 100 else 40):
        if epsilon <= 20.0:
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
            exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
        else:  # Φ(−μ/2) = e^{−ε}/(1 + e^{−ε}), solved from the other side
            target = -mpmath.mpf(epsilon) - mpmath.log1p(mpmath.exp(-mpmath.mpf(epsilon)))
            exact = 2 * mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(-x)) - target, 39)
        mu = mpmath.sqrt(mpmath.mpf(event.mu_squared))
        assert exact <= mu <= exact * (1 + mpmath.mpf(10) ** -11)
    assert math.sqrt(event.mu_squared) <= epsilon * math.sqrt(2.0)  # as a draw of range 2ε₀
    assert event.rho == pytest.approx(epsilon**2 / 2)


def test_costs_add_up_over_draws_and_measurements() -> None:
    both = DRAWS.then(gaussian(3.0)).then(laplace(7.0))
    parts = (DRAWS, gaussian(3.0), laplace(7.0))
    assert both.mu_squared == pytest.approx(sum(part.mu_squared for part in parts))
    assert both.rho == pytest.approx(sum(part.rho for part in parts))
    assert gaussian(3.0).mu_squared == pytest.approx(2.0 / 9.0)
    assert gaussian(3.0, ADD).mu_squared == pytest.approx(1.0 / 9.0)
    assert gaussian(3.0).rho == pytest.approx(1.0 / 9.0)
    pure = ACCOUNTANTS["pure"].epsilon(DRAWS.then(laplace(7.0)), 0.0)
    assert pure == pytest.approx(ACCOUNTANTS["pure"].epsilon(DRAWS, 0.0) + 2.0 / 7.0)


@pytest.mark.parametrize("name", ["advanced", "per-round"])
def test_laplace_noise_counts_like_a_draw_of_its_epsilon(name: str) -> None:
    one_draw = Events(np.array([1]), np.array([0.25]))
    assert ACCOUNTANTS[name].epsilon(laplace(8.0), 1e-6) == pytest.approx(
        ACCOUNTANTS[name].epsilon(one_draw, 1e-6)
    )
    more = DRAWS.then(laplace(8.0))
    assert ACCOUNTANTS[name].epsilon(more, 1e-6) > ACCOUNTANTS[name].epsilon(DRAWS, 1e-6)


@pytest.mark.parametrize("name", BOUNDED)
def test_accountants_of_bounded_loss_refuse_gaussian_noise(name: str) -> None:
    events = DRAWS.then(gaussian(3.0))
    for call in (ACCOUNTANTS[name].epsilon, ACCOUNTANTS[name].delta):
        with pytest.raises(NotCoveredError, match=f"{name}.*does not cover Gaussian noise"):
            call(events, 0.5)
    with pytest.raises(ParameterError, match="Gaussian noise"):
        Budget(1.0, 1e-6, 100, accountant=name).cost(events)


def test_all_accountants_side_by_side() -> None:
    events = DRAWS.then(gaussian(3.0))
    figures = epsilon_by_accountant(events, 1e-6)
    assert not_covering(events) == ("pure", "advanced", "per-round")
    assert [name for name, value in figures.items() if value == math.inf] == BOUNDED
    assert figures["gaussian"] < figures["zcdp"] < math.inf
    assert not_covering(DRAWS.then(laplace(3.0))) == ()


def test_gaussian_and_laplace_composed_by_dp_accounting() -> None:
    """Against another program: the same ε for Gaussian noise, a smaller one with Laplace noise.

    Our theorem replaces Laplace noise by a coin, whose curve no Gaussian curve comes close to.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = 1e-4
    noisy = pld.from_gaussian_mechanism(5.0, math.sqrt(2.0), value_discretization_interval=step)
    noisier = pld.from_gaussian_mechanism(9.0, math.sqrt(2.0), value_discretization_interval=step)
    counted = pld.from_discrete_laplace_mechanism(1.0 / 11.0, 2, value_discretization_interval=step)
    for judge, events, slack in (
        (noisy.compose(noisier), gaussian(5.0).then(gaussian(9.0)), 0.0),
        (noisy.compose(counted), gaussian(5.0).then(laplace(11.0)), 0.2),
    ):
        for delta in (1e-3, 1e-6):
            theirs = judge.get_epsilon_for_delta(delta)
            ours = ACCOUNTANTS["gaussian"].epsilon(events, delta)
            assert theirs - 4 * step <= ours <= theirs * (1.0 + slack) + 4 * step


# Events


def test_events_keep_the_order_of_their_release() -> None:
    first, last = MeasurementEvent.gaussian(3.0), MeasurementEvent.laplace(7.0)
    events = Events.of_measurements(first).then(DRAWS).then(Events.of_measurements(last))
    rounds = [DrawEvent(int(s), float(r)) for s, r in zip(DRAWS.draws, DRAWS.ranges, strict=True)]
    assert list(events.in_order()) == [first, *rounds, last]
    assert len(events) == 5
    assert events.after == (0, 3)
    assert events != DRAWS.then(Events.of_measurements(first, last))
    assert events.then(events).after == (0, 3, 3, 6)


def test_replacing_a_record_of_an_add_remove_run() -> None:
    """What the event says for replacement is what it would have been under replacement."""
    run = Events.of([2.0], 5, 100, ADD).then(gaussian(3.0, ADD)).then(laplace(7.0, ADD))
    assert run.replaced().measurements == (
        MeasurementEvent.gaussian(3.0, REPLACE),
        MeasurementEvent.laplace(7.0, REPLACE),
    )
    assert run.replaced().ranges.tolist() == (2.0 * run.ranges).tolist()


def test_a_group_of_records_moves_counts_as_often_as_it_is_large() -> None:
    """Three records that leave one cell and enter another: 3·√2 apart, and 6 in L1."""
    run = DRAWS.then(gaussian(3.0)).then(laplace(7.0))
    assert run.for_group(3).measurements == (
        MeasurementEvent(Noise.GAUSSIAN, 3.0, 6.0, 3.0 * math.sqrt(2.0)),
        MeasurementEvent(Noise.LAPLACE, 7.0, 6.0, 3.0 * math.sqrt(2.0)),
    )
    assert run.for_group(3).after == run.after
    assert run.for_group(1) == run


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_scale_or_sensitivity_is_named(bad: float) -> None:
    with pytest.raises(ParameterError, match="sigma ="):
        MeasurementEvent.gaussian(bad)
    with pytest.raises(ParameterError, match="scale ="):
        MeasurementEvent.laplace(bad)
    with pytest.raises(ParameterError, match="l2 ="):
        MeasurementEvent(Noise.GAUSSIAN, 1.0, 1.0, bad)


@pytest.mark.parametrize("after", [(), (0, 0), (4,), (-1,)])
def test_a_bad_place_is_named(after: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="after ="):
        Events(DRAWS.draws, DRAWS.ranges, (MeasurementEvent.gaussian(1.0),), after)


# Scales


scales = st.floats(1e-6, 1e3)


@given(mu=scales, share=st.floats(1e-3, 1.0), neighbours=st.sampled_from(list(Neighbours)))
@settings(max_examples=200, deadline=None)
def test_sigma_is_the_smallest_that_is_within_its_share(
    mu: float, share: float, neighbours: Neighbours
) -> None:
    squared = Fraction(neighbours.table_l2) ** 2
    for sigma, budget in (
        (sigma_for(mu, neighbours.table_l2, share), Fraction(mu) ** 2 * Fraction(share)),
        (sigma_for_rho(mu, neighbours.table_l2, share), 2 * Fraction(mu) * Fraction(share)),
    ):
        assert squared / Fraction(sigma) ** 2 <= budget
        if sigma > 2.0**-10:
            assert squared / Fraction(math.nextafter(sigma, 0.0)) ** 2 > budget
    b = scale_for(mu, neighbours.table_l1, share)
    spent = Fraction(mu) * Fraction(share)
    assert Fraction(neighbours.table_l1) / Fraction(b) <= spent
    if b > 2.0**-10:
        assert Fraction(neighbours.table_l1) / Fraction(math.nextafter(b, 0.0)) > spent


def test_shares_of_mu_add_up_to_the_whole() -> None:
    mu, shares = 0.388, (0.1, 0.6, 0.3)
    events = Events.of_measurements(
        *(MeasurementEvent.gaussian(sigma_for(mu, REPLACE.table_l2, part)) for part in shares)
    )
    assert events.mu_squared == pytest.approx(mu**2, rel=1e-12)
    assert ACCOUNTANTS["gaussian"].delta(events, 1.0) == pytest.approx(delta_of_mu(mu, 1.0))


@pytest.mark.parametrize("epsilon", [1e-3, 0.25, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_the_whole_budget_in_rho_is_the_largest_that_fits(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= epsilon
    assert epsilon_of_rho(rho * (1 + 1e-9), delta) > epsilon
    events = gaussian(sigma_for_rho(rho, REPLACE.table_l2))
    assert ACCOUNTANTS["zcdp"].epsilon(events, delta) == pytest.approx(epsilon, rel=1e-9)


def test_shares_that_cannot_be_met_are_named() -> None:
    with pytest.raises(ParameterError, match="share = 0"):
        sigma_for(1.0, 1.0, 0.0)
    with pytest.raises(ParameterError, match=r"share = 1\.5"):
        scale_for(1.0, 1.0, 1.5)
    with pytest.raises(ParameterError, match="2\\^40"):
        sigma_for(1e-200, 1.0)
    with pytest.raises(ParameterError, match="2\\^53"):
        scale_for(1e-200, 1.0)
    assert sigma_for(1e9, 1.0) == 2.0**-10


# Statement and ledger


def test_a_statement_says_who_does_not_cover_gaussian_noise() -> None:
    run = Events.of([0.0, 2.0], 5, 100, ADD).then(gaussian(3.0, ADD))
    statement = PrivacyStatement.of(run, delta=1e-6, rows=100, neighbours=ADD)
    text = statement.text()
    assert "pure, advanced and per-round do not cover Gaussian noise" in text
    for name in BOUNDED:
        assert statement.shown_replaced(name) == NOT_COVERED
    assert "inf" not in text
    assert "pure holds" not in text
    assert json.loads(statement.to_json())["by_accountant"]["pure"] is None
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    with pytest.raises(NotCoveredError, match="advanced"):
        PrivacyStatement.of(run, delta=1e-6, rows=100, neighbours=ADD, accountant="advanced")
    with pytest.raises(NotCoveredError, match="pure"):
        PrivacyStatement.of(run, delta=0.0, rows=100, neighbours=ADD, accountant="pure")


def test_the_page_says_who_does_not_cover_gaussian_noise() -> None:
    from dualquery.release.page.words import _by_accountant

    statement = PrivacyStatement.of(DRAWS.then(gaussian(3.0)), delta=1e-6, rows=100)
    page = _by_accountant(statement)
    assert page.count(NOT_COVERED) == 3
    assert ">inf<" not in page


def test_a_statement_of_draws_has_no_new_entry() -> None:
    assert "not_covering" not in PrivacyStatement.of(DRAWS, delta=1e-6, rows=100).to_dict()


def test_a_pure_statement_covers_laplace_noise() -> None:
    statement = PrivacyStatement.of(laplace(4.0), delta=0.0, rows=100, accountant="pure")
    assert statement.epsilon == pytest.approx(0.5)
    assert not statement.not_covering


def test_measurements_are_charged_to_a_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-6, slack=0)
    events = DRAWS.then(gaussian(12.0))
    ledger.reserve("tables", events, neighbours=REPLACE)
    account = Ledger(tmp_path / "ledger").account()
    assert account.charge == Charge(events.mu_squared, math.inf)
    assert account.spent == pytest.approx(ACCOUNTANTS["gaussian"].epsilon(events, 1e-6))
    values = json.loads(json.dumps(account.to_dict(), allow_nan=False))
    assert values["pure"] is None
    assert values["releases"][0]["pure"] is None
    ledger.reserve("tables", events, neighbours=REPLACE)  # resumed: not charged again
    with pytest.raises(LedgerError, match="cannot resume"):
        ledger.reserve("tables", DRAWS.then(gaussian(11.0)), neighbours=REPLACE)
    with pytest.raises(BudgetExceededError):
        ledger.reserve("more", gaussian(8.0), neighbours=REPLACE)
    assert len(ledger.account().entries) == 1


def test_a_ledger_of_laplace_noise_has_both_totals(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-6)
    for name in ("one", "two"):
        ledger.reserve(name, laplace(100.0), neighbours=REPLACE)
    charge = ledger.account().charge
    assert charge.pure == pytest.approx(0.04)
    assert charge.mu_squared == pytest.approx(2 * laplace(100.0).mu_squared)
    assert ledger.account().spent == pytest.approx(0.04)


def test_a_charge_is_a_number() -> None:
    with pytest.raises(ParameterError, match="pure = nan"):
        Charge(0.0, math.nan)
    with pytest.raises(ParameterError, match="mu_squared"):
        Charge(math.inf, 0.0)
