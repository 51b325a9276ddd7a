"""The name of the table of outcomes, `_quality`: one row for each expectation and validation."""

QUALITY = "_quality"
