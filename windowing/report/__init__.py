"""What commands report, as values, as text and as a page."""
