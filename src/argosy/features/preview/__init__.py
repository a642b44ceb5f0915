"""`argosy preview`: renders and compares two states of a repository, without a cluster.

In: a repository and two states of it. Out: the changes per Application. Never: writes; prints.
"""
