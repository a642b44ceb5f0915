"""Sharding: which of several controller processes works on which key."""
