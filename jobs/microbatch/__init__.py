"""One micro-batch: rows -> admission -> state -> windows -> outputs, and the stream of the run it is part of."""
