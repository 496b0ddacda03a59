"""All mutants, room by room, in the order of the page."""

from tools.mutants.catalogue import (
    accounting,
    baselines,
    counting,
    draws,
    engines,
    game,
    ledger,
    noise,
    persons,
    rare,
    schemas,
    tables,
)

MUTANTS = (
    *draws.MUTANTS,
    *noise.MUTANTS,
    *tables.MUTANTS,
    *rare.MUTANTS,
    *accounting.MUTANTS,
    *persons.MUTANTS,
    *schemas.MUTANTS,
    *counting.MUTANTS,
    *engines.MUTANTS,
    *game.MUTANTS,
    *ledger.MUTANTS,
    *baselines.MUTANTS,
)
"""Every mistake the tests are known to notice."""

__all__ = ["MUTANTS"]
