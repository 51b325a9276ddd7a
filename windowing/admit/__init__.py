"""Admission: every row read gets exactly one outcome."""
