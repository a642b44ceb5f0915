"""May this be done?

In: a project, an application, a key. Out: what speaks against it; nothing where it may. Never: raises, asks a cluster.
"""
