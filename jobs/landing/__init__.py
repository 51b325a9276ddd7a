"""How files that land are taken: looked at, split into records, committed batch by batch."""
