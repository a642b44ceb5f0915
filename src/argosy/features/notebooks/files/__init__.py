"""`argosy notebook` without a cluster: run, validate, compare and report notebook files."""
