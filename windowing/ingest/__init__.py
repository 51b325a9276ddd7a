"""Files that land in a folder become rows of the source table, each record once."""
