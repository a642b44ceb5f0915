"""Argo CD's engine: from a Git source to objects in a cluster and a status that describes them."""
