"""Differences between Git and the cluster: which field, why, and who changed it."""
