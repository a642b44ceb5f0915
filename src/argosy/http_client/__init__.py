"""Requests to others than the cluster. In: an address, what to send. Out: the answer. Never: follows a redirect."""
