"""Patches of manifests: JSON patch, merge patch, strategic merge, three-way merge, server-side apply.

In: plain data. Out: new plain data that shares unchanged parts with the input. Never: mutates its input; does I/O.
"""
