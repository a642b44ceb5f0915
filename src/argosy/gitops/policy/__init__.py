"""Policy: decides what projects, sync windows and RBAC permit.

In: a project, an Application, a key. Out: the reasons against; none if it is permitted. Never: raises, asks a cluster.
"""
