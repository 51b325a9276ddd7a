"""One writer for each pipeline."""
