"""Kubernetes without GitOps: objects, patches, schemas, clients and the controller runtime."""
