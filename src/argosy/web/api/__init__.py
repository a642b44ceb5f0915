"""The REST API: one file a resource, in Argo CD's paths and shapes."""
