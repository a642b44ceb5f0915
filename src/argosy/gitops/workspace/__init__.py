"""Renders paths and Applications that are named on the command line.

In: paths, Applications, flags. Out: manifests, or one error each. Never: prints; writes outside of the cache.
"""
