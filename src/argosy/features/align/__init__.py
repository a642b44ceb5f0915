"""Brings Applications in line: proposes, proves by comparing again, and writes to the files that they come from.

In: a reader of a cluster, Applications, a repository's folder. Out: proposals with proof; edited texts. Never:
writes to a cluster; claims what was not compared again.
"""
