"""Expressions of a spec as Spark columns, exact where Spark is not."""
