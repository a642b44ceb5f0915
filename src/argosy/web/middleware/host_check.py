"""Host header check: protects against DNS rebinding.

In: Host headers. Out: whether the host is ours. Never: accepts a missing or repeated header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

PROBE_PATHS: Final = ("/healthz", "/readyz")  # kubelet probes use the Pod's IP; the response is only "ok"


def parse_hostname(host: str) -> str:
    """Return the host without port, in lower case; "" if it is invalid."""
    host = host.strip().lower()
    if host.startswith("["):
        name, closed, port = host.partition("]")
        return f"{name}]" if closed and _is_port(port) else ""
    name, colon, port = host.partition(":")
    return name.removesuffix(".") if not colon or _is_port(f":{port}") else ""


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6)


def is_known_host(host_headers: Sequence[str], hosts: Sequence[str], *, is_loopback: bool = True) -> bool:
    """True if the host is ours. On a non-loopback server any IP address is: it cannot be rebound by DNS."""
    name = parse_hostname(host_headers[0]) if len(host_headers) == 1 else ""
    return bool(name) and (name in hosts or (not is_loopback and _is_address(name)))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
