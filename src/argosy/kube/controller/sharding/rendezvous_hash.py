"""Who of several has which key, by the highest random weight. In: names and a key. Out: one of the names.

Never: needs to know more than who is there. When one comes or goes, only the keys that it gets or had change hands.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def owner(members: Iterable[str], key: str) -> str:
    """The same for everybody who knows the same members; empty where there is none."""
    return max(members, key=lambda member: (_weight(member, key), member), default="")


def _weight(member: str, key: str) -> bytes:
    return blake2b(f"{member}\0{key}".encode(), digest_size=8).digest()
