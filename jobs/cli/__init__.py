"""One file for each family of commands, and what they share."""
