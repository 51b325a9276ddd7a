"""What arrived: the Delta source, its schema and its event times."""
