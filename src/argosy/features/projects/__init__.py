"""`argosy proj`: projects, their rules, roles and sync windows."""
