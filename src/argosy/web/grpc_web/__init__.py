"""Argo CD's gRPC services as gRPC-Web: their methods and messages, and how a call becomes a REST request."""
