"""Tables for experiments: public ones by name, and invented ones of any size.

An invented table makes its columns when they are needed. Start reading at `catalogue` for public
tables and at `generated` for invented ones.
"""

from dualquery.paper.datasets.biased import BiasedTable
from dualquery.paper.datasets.ratings import RatingsTable

__all__ = ["BiasedTable", "RatingsTable"]
