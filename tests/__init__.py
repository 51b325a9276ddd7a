"""Tests, one folder for each folder of the code, and the oracle they agree with."""
