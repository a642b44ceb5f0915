"""Served models: list, request, restart, and trace to a commit."""
