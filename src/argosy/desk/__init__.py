"""What people ask of an installation, whichever door they come in by.

In: a cluster, files, what was typed or clicked. Out: values to show. Never: prints; chooses or opens a cluster; starts
anything that stays.
"""
