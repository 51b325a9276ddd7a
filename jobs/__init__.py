"""What can be asked of a pipeline, and the machinery behind it; every side effect starts here."""
