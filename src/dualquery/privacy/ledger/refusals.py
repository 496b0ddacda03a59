"""What a ledger refuses, in words that say what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualquery.privacy.ledger.account import Account, Entry
from dualquery.privacy.ledger.chain import LedgerError, Mark
from dualquery.privacy.ledger.rule import Charge
from dualquery.privacy.rounding import rounded_up


class BudgetExceededError(LedgerError):
    """With this release, the sum would exceed the total that the ledger declares."""


def check_room(path: Path, account: Account, charge: Charge) -> None:
    """Refuse a charge for which the ledger has no room, with all three figures."""
    total, rule = account.charge + charge, account.rule
    if rule.admits(total):
        return
    if not rule.may_fail(total):
        raise BudgetExceededError(
            f"ledger {path} ({account.label}): discovered values may fail with "
            f"δ'={rounded_up(total.slack)} in all, and the ledger declares "
            f"δ'={rounded_up(rule.slack)} of δ={rounded_up(account.delta)} for that; give a "
            "smaller delta"
        )
    raise BudgetExceededError(
        f"ledger {path} ({account.label}): spent "
        f"ε={rounded_up(account.spent)}, asked "
        f"ε={rounded_up(rule.spent(charge))}, together "
        f"ε={rounded_up(rule.spent(total))} of a total "
        f"ε={rounded_up(account.epsilon)} at δ={rounded_up(account.delta)}"
        + (
            f", of which {rounded_up(rule.slack)} is kept for schemas that are bought; ask "
            "for a little less, or create a ledger that keeps nothing for them (slack 0)"
            if rule.slack and rule.spent(total) <= account.epsilon * 1.05
            else ""
        )
    )


def check_resumed(entry: Entry, charge: Charge, drawn: Sequence[str]) -> None:
    """Refuse to go on with a release that is spent, costs something else, or drew otherwise."""
    rounds, digest = entry.rounds, entry.digest
    called = entry.note or entry.release
    if entry.state == "spent" and not (rounds and len(drawn) == rounds):
        raise LedgerError(
            f"release {called} was published at {entry.spent_at}; a new release needs a new id"
        )
    if charge != entry.charge:
        raise LedgerError(
            f"release {called} was reserved at μ²={entry.charge.mu_squared:.6g}, pure "
            f"ε={entry.charge.pure:.6g}, and cannot resume at μ²={charge.mu_squared:.6g}, pure "
            f"ε={charge.pure:.6g}"
        )
    if len(drawn) < rounds:
        raise LedgerError(
            f"release {called} cannot resume from {len(drawn)} rounds: the ledger saw "
            f"{rounds} drawn, and a round is drawn once; this is an older copy of the run: put "
            "the newest one back, or begin a new release, which is charged again"
        )
    if len(drawn) > rounds or (rounds and drawn[rounds - 1] != digest):
        raise LedgerError(
            f"release {called} cannot resume: its {rounds} rounds are not the ones the "
            "ledger saw drawn; a copy of this run went on elsewhere"
        )


def lacks(path: Path, seen: Mark, who: str) -> LedgerError:
    """The error about a ledger that lacks what somebody has seen of it."""
    return LedgerError(
        f"ledger {path} does not hold link {seen.position}, which {who} has seen: this is an older "
        "copy of the ledger, or it was edited; put the newest copy back"
    )
