"""A cluster of this process for those who try something out: tests first of all.

In: a folder for what it writes, Applications with the folders that they are read from. Out: a cluster that behaves like
one, and Applications that are delivered to it. Never: reaches another cluster; outlives whoever opened it.
"""
