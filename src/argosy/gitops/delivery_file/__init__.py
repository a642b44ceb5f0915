"""argosy.yaml, the delivery file: repository, environments, gates and health checks as values."""
