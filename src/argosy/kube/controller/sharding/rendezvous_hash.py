"""Rendezvous (highest random weight) hashing: assigns each key to one member.

In: member names and a key. Out: one of the names. Never: needs other state. If a member joins or leaves, only the keys
that it gets or had move.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def find_owner(members: Iterable[str], key: str) -> str:
    """Return the owner of a key, the same for all processes with the same members; empty if there are none."""
    return max(members, key=lambda member: (_hash_weight(member, key), member), default="")


def _hash_weight(member: str, key: str) -> bytes:
    return blake2b(f"{member}\0{key}".encode(), digest_size=8).digest()
