"""Sharding: decides which controller replica works on which key."""
