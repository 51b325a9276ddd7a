"""From panes to windows; one file for each family."""
