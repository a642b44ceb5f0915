"""Observability of a running process: metrics, logs and health endpoints."""
