"""Argo CD's gRPC services, over gRPC and gRPC-Web: methods and messages, and how a call becomes a REST request."""
