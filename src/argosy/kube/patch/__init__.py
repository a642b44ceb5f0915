"""Ways to change a manifest: JSON patch, merge patch, strategic merge, three-way merge, field ownership.

In: plain data. Out: new plain data that shares what did not change. Never: mutates its input; does I/O.
"""
