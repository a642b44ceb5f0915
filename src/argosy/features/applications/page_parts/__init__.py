"""Shared parts of the pages of an Application."""
