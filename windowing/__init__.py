"""Event-time windows over Delta tables, in flow order: spec, source, admit, panes, windows, merge, ledger, report."""
