"""What aggregates are made of: parts that are lifted from events, merged, and lowered to values."""
