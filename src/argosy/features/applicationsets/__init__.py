"""ApplicationSets in Argo CD's API."""
