"""`argosy generate`: manifests that a user commits, for a stock Argo CD."""
