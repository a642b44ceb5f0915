"""ApplicationSets over Argo CD's API."""
