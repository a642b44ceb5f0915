"""An installation as a file, and a file as an installation: what `argosy admin export` and `import` are made of.

In: a cluster, a stream of YAML in the form of Argo CD's own export. Out: the same, read or planned and written. Never:
a Secret that nobody asked for; an operation that was under way elsewhere.
"""
