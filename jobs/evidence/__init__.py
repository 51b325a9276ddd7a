"""Which events a step has accepted into a window."""
