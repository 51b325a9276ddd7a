"""The names of all aggregates; what a spec and an expression know about aggregates begins here.

windowing/spec/aggregates.py reads expressions, and windowing/spec/expressions/tokens.py has to know
aggregates, so neither of them can own the names.
"""

ONE_COLUMN = (
    "sum",
    "min",
    "max",
    "avg",
    "count_distinct",
    "median",
    "first",
    "last",
    "variance",
    "stddev",
    "count_if",
)
TWO_COLUMNS = ("min_by", "max_by")
FUNCTIONS = ("count", *ONE_COLUMN, *TWO_COLUMNS, "quantile", "top_k", "collect")
"""Every aggregate, in the order in which messages name them."""
