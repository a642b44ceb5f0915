"""Streams of the API: Applications and their trees as they change."""
