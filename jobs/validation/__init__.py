"""What a validation follows from, and sums that left their type."""
