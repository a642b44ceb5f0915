"""`argosy setup`: environments, permissions and Applications for an Argo CD."""
