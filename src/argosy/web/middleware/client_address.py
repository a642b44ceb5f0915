"""Where a request comes from, also through proxies.

In: the address of a connection, X-Forwarded-For, the proxies that are trusted. Out: an address. Never: believes what
anybody else writes there.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

SETTING: Final = "server.proxies"  # of argosy-cm: addresses and networks, with commas between them
MOST_HOPS: Final = 20


def peer_of(direct: str, forwarded: str, proxies: str) -> str:
    """From the last hop back to the first that is no proxy of ours."""
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
    """What cannot be read trusts nobody."""
    found = []
    for each in text.split(","):
        try:
            found.append(ipaddress.ip_network(each.strip(), strict=False))
        except ValueError:
            continue
    return tuple(found)
