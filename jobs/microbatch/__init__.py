"""One micro-batch, rows -> admission -> state -> windows -> outputs, and the stream of one run."""
