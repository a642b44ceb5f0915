"""What people do with Applications, over any cluster: read them, ask for syncs, wait, hold, change.

In: a cluster and what was typed. Out: values to show. Never: prints; delivers anything itself: the engine does.
"""
