"""Live page updates with server-sent events.

In: changes from the cluster view, and open pages. Out: the changed parts of each page. Never: a part that its reader
may not see; blocks all readers because one is slow.
"""
