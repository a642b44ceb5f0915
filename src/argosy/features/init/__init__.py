"""A new repository to begin with.

In: a name and an address. Out: files, committed. Never: half a repository, or a secret in one.
"""
