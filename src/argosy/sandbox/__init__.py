"""A Kubernetes API server in one process, and controllers that simulate the rest of a cluster. Knows no GitOps."""
