"""What a branch would change, without a cluster: two states of a repository, rendered and compared.

In: a repository and two states of it. Out: what changes, application by application. Never: writes; prints.
"""
