"""Where windows begin: boundaries on a clock, in a zone, on a calendar."""
