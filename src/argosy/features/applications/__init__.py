"""`argosy app`, the pages of Applications and their API: one folder for each action."""
