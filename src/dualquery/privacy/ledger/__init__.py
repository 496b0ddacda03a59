"""A budget ledger: what releases of one data set have spent of a declared total.

`rule` says what fits into the total, `chain` how entries hold one another, `account` what they add
up to, `file` how they are on disk, and `ledger` what may be done with them.
"""

from dualquery.privacy.ledger.account import Account, Entry
from dualquery.privacy.ledger.chain import LedgerError, Mark
from dualquery.privacy.ledger.ledger import BudgetExceededError, Ledger, Turns
from dualquery.privacy.ledger.rule import SLACK, Charge, Rule

__all__ = [
    "SLACK",
    "Account",
    "BudgetExceededError",
    "Charge",
    "Entry",
    "Ledger",
    "LedgerError",
    "Mark",
    "Rule",
    "Turns",
]
