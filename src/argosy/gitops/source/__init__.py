"""Resolves a repository and a ref to a file tree at a revision.

In: repoURL, ref, settings, credentials. Out: Checkout(tree, revision). Never: parses a manifest; runs code of a
repository.
"""
