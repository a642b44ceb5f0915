"""Renders what was named on the command line.

In: paths, Applications, flags. Out: manifests, or an error for each. Never: prints; writes outside of the cache.
"""
