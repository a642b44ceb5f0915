"""argosy: GitOps delivery for machine-learning workloads that speaks Argo CD's language. Start at ARCHITECTURE.md."""

__version__ = "0.1.0"
