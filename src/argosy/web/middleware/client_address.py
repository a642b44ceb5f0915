"""Client IP address, also behind proxies.

In: the address of the connection, X-Forwarded-For, the trusted proxies. Out: an address. Never: trusts a header from
another sender.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

SETTING: Final = "server.proxies"  # of argosy-cm: IP addresses and networks, comma-separated
MOST_HOPS: Final = 20


def peer_of(direct: str, forwarded: str, proxies: str) -> str:
    """Return the last hop that is not a trusted proxy."""
    found = direct
    for hop in reversed(forwarded.split(",")[-MOST_HOPS:] if proxies else ()):
        if not _is_within(found, proxies) or not _address(hop.strip()):
            break
        found = hop.strip()
    return found


@lru_cache(maxsize=256)
def _is_within(text: str, proxies: str) -> bool:
    address = _address(text)
    return address is not None and any(address in network for network in _networks(proxies))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


@lru_cache(maxsize=8)
def _networks(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Parse networks; an invalid entry trusts nobody."""
    found = []
    for each in text.split(","):
        try:
            found.append(ipaddress.ip_network(each.strip(), strict=False))
        except ValueError:
            continue
    return tuple(found)
