"""What counts: every row read gets exactly one outcome."""
