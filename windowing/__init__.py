"""Event-time windows over Delta tables.

In flow order: spec, source, admit, panes, windows, merge, ledger, report.
"""
