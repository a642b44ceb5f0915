"""`argosy cluster`: destination clusters of Applications."""
