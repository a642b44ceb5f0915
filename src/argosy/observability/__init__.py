"""Observability of a running process: metrics, logs, health endpoints, and redaction of what leaves it."""
