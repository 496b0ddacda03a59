"""Differentially private answers to millions of queries, and a synthetic table, from wide tables.

import dualquery as dq
frame, schema = dq.example()
synth = dq.DualQuery(epsilon=1.0, delta=1e-6).fit(frame, schema=schema)
synth.answer("sex=Female & age>=50")
synth.sample(10_000)

The names below are the public ones; docs/reference/python.md documents each of them, and
docs/develop/stability.md says what is promised. Everything inside the rooms is internal.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dualquery.version import __version__

if TYPE_CHECKING:
    from dualquery.auditing.report import Audit
    from dualquery.auditing.run import audit
    from dualquery.base.errors import (
        DualQueryError,
        EngineError,
        ParameterError,
        QueryError,
        ReleaseError,
        SchemaError,
        TableError,
        UnavailableError,
    )
    from dualquery.domain.attributes import Attribute
    from dualquery.domain.language import parse
    from dualquery.domain.printing import format_query
    from dualquery.domain.query import Literal, Query
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.evaluation.figures import Evaluation, evaluate
    from dualquery.game.moves import ModelMove, RecordMove, TablesMove
    from dualquery.game.transcript import Round, Transcript
    from dualquery.oracles.oracle import Oracle, Response, respond
    from dualquery.oracles.problem import Problem
    from dualquery.oracles.registry import oracle
    from dualquery.paper.demo.survey import example
    from dualquery.privacy.accountants import epsilon_by_accountant
    from dualquery.privacy.accountants.protocol import Accountant, NotCoveredError
    from dualquery.privacy.events import Events, MeasurementEvent
    from dualquery.privacy.ledger import BudgetExceededError, Ledger, LedgerError
    from dualquery.privacy.statement import PrivacyStatement
    from dualquery.release.asking.figure import Figure
    from dualquery.release.certificate import Certificate
    from dualquery.release.parameters import RunParameters
    from dualquery.release.release import Release, load
    from dualquery.rows.checking import Check, check
    from dualquery.rows.drafting import draft_schema
    from dualquery.rows.opening import TableFile
    from dualquery.workloads.generators import (
        all_marginals,
        parities,
        random_marginals,
        ranges,
        read_workload,
        thresholds,
    )
    from dualquery.workloads.workload import Workload

# A name is loaded when it is first used. So `import dualquery` costs nothing, and only those who
# play wait for numba and the solvers.
_HOMES = {
    "dualquery.auditing.report": ("Audit",),
    "dualquery.auditing.run": ("audit",),
    "dualquery.base.errors": (
        "DualQueryError",
        "EngineError",
        "ParameterError",
        "QueryError",
        "ReleaseError",
        "SchemaError",
        "TableError",
        "TableFile",
        "UnavailableError",
    ),
    "dualquery.domain.attributes": ("Attribute",),
    "dualquery.domain.language": ("parse",),
    "dualquery.domain.printing": ("format_query",),
    "dualquery.domain.query": ("Literal", "Query"),
    "dualquery.domain.schema": ("Schema",),
    "dualquery.estimator": ("DualQuery",),
    "dualquery.evaluation.figures": ("Evaluation", "evaluate"),
    "dualquery.game.moves": ("ModelMove", "RecordMove", "TablesMove"),
    "dualquery.game.transcript": ("Round", "Transcript"),
    "dualquery.oracles.oracle": ("Oracle", "Response", "respond"),
    "dualquery.oracles.problem": ("Problem",),
    "dualquery.oracles.registry": ("oracle",),
    "dualquery.paper.demo.survey": ("example",),
    "dualquery.privacy.accountants": ("epsilon_by_accountant",),
    "dualquery.privacy.accountants.protocol": ("Accountant", "NotCoveredError"),
    "dualquery.privacy.events": ("Events", "MeasurementEvent"),
    "dualquery.privacy.ledger": ("BudgetExceededError", "Ledger", "LedgerError"),
    "dualquery.privacy.statement": ("PrivacyStatement",),
    "dualquery.release.asking.figure": ("Figure",),
    "dualquery.release.certificate": ("Certificate",),
    "dualquery.release.parameters": ("RunParameters",),
    "dualquery.release.release": ("Release", "load"),
    "dualquery.rows.checking": ("Check", "check"),
    "dualquery.rows.drafting": ("draft_schema",),
    "dualquery.rows.opening": ("TableFile",),
    "dualquery.workloads.generators": (
        "all_marginals",
        "parities",
        "random_marginals",
        "ranges",
        "read_workload",
        "thresholds",
    ),
    "dualquery.workloads.workload": ("Workload",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'dualquery' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Accountant",
    "Attribute",
    "Audit",
    "BudgetExceededError",
    "Certificate",
    "Check",
    "DualQuery",
    "DualQueryError",
    "EngineError",
    "Evaluation",
    "Events",
    "Figure",
    "Ledger",
    "LedgerError",
    "Literal",
    "MeasurementEvent",
    "ModelMove",
    "NotCoveredError",
    "Oracle",
    "ParameterError",
    "PrivacyStatement",
    "Problem",
    "Query",
    "QueryError",
    "RecordMove",
    "Release",
    "ReleaseError",
    "Response",
    "Round",
    "RunParameters",
    "Schema",
    "SchemaError",
    "TableError",
    "TableFile",
    "TablesMove",
    "Transcript",
    "UnavailableError",
    "Workload",
    "__version__",
    "all_marginals",
    "audit",
    "check",
    "draft_schema",
    "epsilon_by_accountant",
    "evaluate",
    "example",
    "format_query",
    "load",
    "oracle",
    "parities",
    "parse",
    "random_marginals",
    "ranges",
    "read_workload",
    "respond",
    "thresholds",
]
