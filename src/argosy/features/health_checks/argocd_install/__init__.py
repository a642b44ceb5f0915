"""Installs health checks into an existing Argo CD and verifies them.

In: health rules, an Argo CD installation. Out: merged entries and step messages. Never: loses a foreign entry.
"""
