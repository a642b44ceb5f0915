"""Operations on Applications in any cluster: read, compare, sync, wait, hold, change.

In: a cluster and the user's input. Out: values to show. Never: prints; applies manifests itself: the engine does that.
"""
