"""Invented tables of any size, made on the spot; the columns are made as they are needed."""

from dualquery.paper.datasets.biased import BiasedTable
from dualquery.paper.datasets.ratings import RatingsTable

__all__ = ["BiasedTable", "RatingsTable"]
