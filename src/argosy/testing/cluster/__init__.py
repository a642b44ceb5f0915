"""An in-process cluster, mainly for tests.

In: a folder for its files, Applications with the local folders of their sources. Out: a cluster, and Applications that
are synced to it. Never: uses another cluster; stays open after the caller has closed it.
"""
