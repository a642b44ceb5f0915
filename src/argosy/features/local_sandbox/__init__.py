"""`argosy sandbox`: the embedded cluster as a process on this machine."""
