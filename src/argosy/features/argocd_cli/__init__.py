"""argosy run as `argocd`: the same commands, output and exit codes."""
