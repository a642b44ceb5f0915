"""`argosy serve`: the web UI and the REST API."""
