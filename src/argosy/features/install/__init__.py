"""`argosy install`: argosy itself in a cluster."""
