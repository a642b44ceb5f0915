"""`argosy install` and `argosy uninstall`: argosy itself in a cluster."""
