"""Published tables, and publications by their numbers."""
