"""All mutants, room by room, in the order of the page."""

from tools.mutants.catalogue import (
    accounting,
    app,
    audit,
    baselines,
    choosing,
    counting,
    draws,
    engines,
    game,
    gate,
    guards,
    ledger,
    noise,
    persons,
    rare,
    reader,
    relations,
    schemas,
    tables,
)

MUTANTS = (
    *draws.MUTANTS,
    *noise.MUTANTS,
    *tables.MUTANTS,
    *rare.MUTANTS,
    *choosing.MUTANTS,
    *relations.MUTANTS,
    *accounting.MUTANTS,
    *audit.MUTANTS,
    *reader.MUTANTS,
    *persons.MUTANTS,
    *schemas.MUTANTS,
    *counting.MUTANTS,
    *engines.MUTANTS,
    *game.MUTANTS,
    *gate.MUTANTS,
    *guards.MUTANTS,
    *app.MUTANTS,
    *ledger.MUTANTS,
    *baselines.MUTANTS,
)
"""Every mistake the tests are known to notice."""

__all__ = ["MUTANTS"]
