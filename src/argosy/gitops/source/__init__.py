"""From a repository and a ref to a tree of files.

In: repoURL, ref, settings, credentials. Out: Checkout(tree, revision). Never: opens a
manifest; runs what a repository holds.
"""
