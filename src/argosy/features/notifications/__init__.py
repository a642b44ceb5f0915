"""Notifications in Argo CD's own configuration, about Applications and about notebooks."""
