"""`argosy cluster`: the clusters that Applications are delivered to."""
