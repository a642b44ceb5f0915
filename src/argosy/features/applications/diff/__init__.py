"""Differences between Git and the cluster, with cause and field manager."""
