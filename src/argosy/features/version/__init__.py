"""`argosy version`."""
