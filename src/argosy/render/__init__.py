"""From files to manifests. In: a tree and a path in it. Out: its manifests. Never: a cluster, the network."""
