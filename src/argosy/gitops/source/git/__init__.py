"""Repositories by way of the git program: mirrors, refs, objects, trees.

In: an address and a ref. Out: a revision and its tree. Never: a work tree, a hook, a filter, a submodule, a shell.
"""
