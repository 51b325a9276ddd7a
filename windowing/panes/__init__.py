"""State: mergeable partial aggregates, one pane or fragment per event."""
