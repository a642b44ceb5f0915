"""Sync an Application, follow the operation, wait for a status."""
