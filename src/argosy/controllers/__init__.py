"""Kubernetes kinds to the corridor. In: a key. Out: a patch of the object. Never: logic that a room could hold."""
