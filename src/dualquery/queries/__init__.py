"""Literals, queries, workloads and the query language: all of it public."""

from dualquery.queries.generators import (
    all_marginals,
    parities,
    random_marginals,
    ranges,
    read_workload,
    thresholds,
)
from dualquery.queries.language import parse
from dualquery.queries.printing import format_query
from dualquery.queries.query import Literal, Query, conjunction, parity
from dualquery.queries.workload import Literals, Workload

__all__ = [
    "Literal",
    "Literals",
    "Query",
    "Workload",
    "all_marginals",
    "conjunction",
    "format_query",
    "parities",
    "parity",
    "parse",
    "random_marginals",
    "ranges",
    "read_workload",
    "thresholds",
]
