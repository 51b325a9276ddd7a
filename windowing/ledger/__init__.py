"""What was done: one row for each step."""
