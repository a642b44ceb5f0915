"""Notifications about Applications and notebooks, configured as in Argo CD."""
