"""Expressions as text: tokens -> syntax -> tree -> canonical text."""
