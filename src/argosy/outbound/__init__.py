"""Requests to others than the cluster. In: an address, a document. Out: the answer. Never: follows a redirect."""
