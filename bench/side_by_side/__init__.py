"""Two servers of the Kubernetes API, started, loaded and measured in turns."""
