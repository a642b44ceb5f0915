"""Export and import of an installation: `argosy admin export` and `argosy admin import`.

In: a cluster, a YAML stream in the format of Argo CD's export. Out: the stream; an import plan and its execution.
Never: exports Secrets unless requested; continues an operation of another cluster.
"""
