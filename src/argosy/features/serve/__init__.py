"""`argosy serve`: the page and the REST API as a process."""
