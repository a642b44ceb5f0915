"""The embedded Kubernetes-compatible API server. Knows nothing of GitOps.

In: Kubernetes REST, or calls through `in_process_client.EmbeddedCluster`. Out: manifests, watches, Status objects.
Start at `registry` (every write), `http.asgi` (every request) and `control_plane` (the wiring).
"""
