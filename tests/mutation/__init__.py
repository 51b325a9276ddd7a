"""Mutation testing: bugs put in on purpose, which the tests must find."""
