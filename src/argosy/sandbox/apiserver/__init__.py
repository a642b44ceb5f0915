"""The embedded Kubernetes-compatible API server: an annex that knows nothing of GitOps.

In: Kubernetes REST, or calls through `embedded.EmbeddedCluster`. Out: manifests, watches, Status objects.
Start at `registry` (every write), `http.asgi` (every request) and `control_plane` (how it is put together).
"""
