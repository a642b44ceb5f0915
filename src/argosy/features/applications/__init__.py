"""`argosy app`, the web pages of Applications and their API, with one folder per action."""
