"""Syncs a cluster with Git: a comparison becomes tasks, which run in waves.

In: pairs of desired and live manifests, and the operation so far. Out: ordered tasks, and the operation one step
further. Never: waits or sleeps.
"""
