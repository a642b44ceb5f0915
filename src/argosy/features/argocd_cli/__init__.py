"""argosy called as `argocd`: its commands, outputs and exit codes."""
