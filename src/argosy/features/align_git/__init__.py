"""`argosy align`: proposes changes that make Applications Synced, proves them by comparing again, and edits the files.

In: a cluster reader, Applications, a repository folder. Out: proposals with proof; edited files. Never: writes to a
cluster; claims a result that was not compared again.
"""
