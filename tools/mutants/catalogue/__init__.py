"""All mutants, room by room, in the order of the page."""

from tools.mutants.catalogue import accounting, draws, engines, game, ledger

MUTANTS = (
    *draws.MUTANTS,
    *accounting.MUTANTS,
    *engines.MUTANTS,
    *game.MUTANTS,
    *ledger.MUTANTS,
)
"""Every mistake the tests are known to notice."""

__all__ = ["MUTANTS"]
