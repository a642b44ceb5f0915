"""Logs of the Pods of an Application."""
