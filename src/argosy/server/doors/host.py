"""Under which names this server answers: a page elsewhere that points its own name here gets nothing.

In: a Host header. Out: whether it is one of ours. Never: a guess where there is none, or two.
"""

from __future__ import annotations

from collections.abc import Sequence


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


def is_ours(given: Sequence[str], hosts: Sequence[str]) -> bool:
    return len(given) == 1 and hostname(given[0]) in hosts and bool(hostname(given[0]))
