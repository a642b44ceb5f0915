"""The small controllers without which an API server is no cluster: what a real one's controller-manager does for all.

Each is woken by committed events, takes one key at a time, and writes through the registry like any client.
"""
