"""A budget ledger: what releases of one data set have spent of a declared total.

`rule` says what fits into the total, `chain` how entries hold one another, `account` what they add
up to, `file` how they are on disk, `page` what one transaction sees of them, `ledger` what may be
done with them, `refusals` why not, and `turns` how a run draws its rounds.
"""

from dualquery.privacy.ledger.account import Account, Entry
from dualquery.privacy.ledger.chain import LedgerError, Mark
from dualquery.privacy.ledger.ledger import Ledger
from dualquery.privacy.ledger.refusals import BudgetExceededError
from dualquery.privacy.ledger.rule import SLACK, Charge, Rule
from dualquery.privacy.ledger.turns import Turns

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
