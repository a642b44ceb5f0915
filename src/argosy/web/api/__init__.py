"""REST API: shared parts of the API, in Argo CD's paths and formats."""
