"""Closed periods: which rows are frozen, and what is stated of them in another table instead."""
