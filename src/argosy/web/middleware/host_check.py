"""Under which names this server answers: a page elsewhere that points its own name here gets nothing.

In: a Host header. Out: whether it is one of ours. Never: a guess where there is none, or two.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

ANYWHERE: Final = ("/healthz", "/readyz")  # a kubelet asks by the Pod's address; ok is all that they say


def hostname(host: str) -> str:
    """Without the port, in lower case; empty where it is none."""
    host = host.strip().lower()
    if host.startswith("["):
        name, closed, port = host.partition("]")
        return f"{name}]" if closed and _is_port(port) else ""
    name, colon, port = host.partition(":")
    return name.removesuffix(".") if not colon or _is_port(f":{port}") else ""


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6)


def is_ours(given: Sequence[str], hosts: Sequence[str], *, is_loopback: bool = True) -> bool:
    """Beyond this machine an address is as good as a name: nobody can make it lead elsewhere."""
    name = hostname(given[0]) if len(given) == 1 else ""
    return bool(name) and (name in hosts or (not is_loopback and _is_address(name)))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
