"""`argosy doctor`: examines an installation and its Applications. The rules are in `argosy.gitops.analysis`."""
