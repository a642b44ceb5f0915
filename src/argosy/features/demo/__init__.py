"""`argosy demo`: a complete GitOps setup on this machine, with failure drills."""
