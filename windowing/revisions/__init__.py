"""The values that windows had before they were corrected."""
