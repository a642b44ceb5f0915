"""How a release goes from one environment to the next.

In: rendered manifests, a repository's log, what a cluster says. Out: what moves, which gates are open, files to write.
Never: I/O; reads a clock.
"""
