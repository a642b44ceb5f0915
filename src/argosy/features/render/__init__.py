"""`argosy render`: print the manifests of folders and Applications."""
