"""Reads Git repositories with the git program: mirrors, refs, objects, trees.

In: a URL and a ref. Out: a revision and its tree. Never: uses a work tree, a hook, a filter, a submodule or a shell.
"""
