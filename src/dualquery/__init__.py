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
    from dualquery.errors import DualQueryError
    from dualquery.estimator import DualQuery
    from dualquery.queries import (
        Query,
        Workload,
        all_marginals,
        format_query,
        parities,
        parse,
        random_marginals,
        ranges,
        read_workload,
        thresholds,
    )
    from dualquery.release.directory import read_release as load
    from dualquery.release.release import Release
    from dualquery.schema import Attribute, Schema

# Loaded when first used: `import dualquery` costs nothing, and numba and the solvers
# are paid for by those who play.
_HOMES = {
    "Attribute": ("dualquery.schema", "Attribute"),
    "DualQuery": ("dualquery.estimator", "DualQuery"),
    "DualQueryError": ("dualquery.errors", "DualQueryError"),
    "Query": ("dualquery.queries", "Query"),
    "Release": ("dualquery.release.release", "Release"),
    "Schema": ("dualquery.schema", "Schema"),
    "Workload": ("dualquery.queries", "Workload"),
    "all_marginals": ("dualquery.queries", "all_marginals"),
    "format_query": ("dualquery.queries", "format_query"),
    "load": ("dualquery.release.directory", "read_release"),
    "parities": ("dualquery.queries", "parities"),
    "parse": ("dualquery.queries", "parse"),
    "random_marginals": ("dualquery.queries", "random_marginals"),
    "ranges": ("dualquery.queries", "ranges"),
    "read_workload": ("dualquery.queries", "read_workload"),
    "thresholds": ("dualquery.queries", "thresholds"),
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
