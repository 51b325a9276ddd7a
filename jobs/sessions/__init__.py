"""The Spark sessions that commands work in."""
