"""Differentially private answers to millions of queries, and a synthetic table, from wide tables.

import dualquery as dq
schema = dq.Schema.load("schema.toml")
synth = dq.DualQuery(epsilon=1.0, delta=1e-6).fit(frame, schema=schema)
synth.answer("sex=Female & age>=50")
synth.sample(10_000)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dualquery.version import __version__

if TYPE_CHECKING:
    from dualquery.base.errors import DualQueryError
    from dualquery.domain.attributes import Attribute
    from dualquery.domain.language import parse
    from dualquery.domain.printing import format_query
    from dualquery.domain.query import Query
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.release.release import Release, load
    from dualquery.workloads.generators import (
        all_marginals,
        parities,
        random_marginals,
        ranges,
        read_workload,
        thresholds,
    )
    from dualquery.workloads.workload import Workload

# Loaded when first used: `import dualquery` costs nothing, and numba and the solvers
# are paid for by those who play.
_HOMES = {
    "Attribute": ("dualquery.domain.attributes", "Attribute"),
    "DualQuery": ("dualquery.estimator", "DualQuery"),
    "DualQueryError": ("dualquery.base.errors", "DualQueryError"),
    "Query": ("dualquery.domain.query", "Query"),
    "Release": ("dualquery.release.release", "Release"),
    "Schema": ("dualquery.domain.schema", "Schema"),
    "Workload": ("dualquery.workloads.workload", "Workload"),
    "all_marginals": ("dualquery.workloads.generators", "all_marginals"),
    "format_query": ("dualquery.domain.printing", "format_query"),
    "load": ("dualquery.release.release", "load"),
    "parities": ("dualquery.workloads.generators", "parities"),
    "parse": ("dualquery.domain.language", "parse"),
    "random_marginals": ("dualquery.workloads.generators", "random_marginals"),
    "ranges": ("dualquery.workloads.generators", "ranges"),
    "read_workload": ("dualquery.workloads.generators", "read_workload"),
    "thresholds": ("dualquery.workloads.generators", "thresholds"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dualquery' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])


__all__ = [
    "Attribute",
    "DualQuery",
    "DualQueryError",
    "Query",
    "Release",
    "Schema",
    "Workload",
    "__version__",
    "all_marginals",
    "format_query",
    "load",
    "parities",
    "parse",
    "random_marginals",
    "ranges",
    "read_workload",
    "thresholds",
]
