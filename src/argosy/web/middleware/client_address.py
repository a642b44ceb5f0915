"""Client IP address, also behind proxies.

In: the address of the connection, X-Forwarded-For, the trusted proxies. Out: an address. Never: trusts a header from
another sender.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

PROXIES_SETTING: Final = "server.proxies"  # of argosy-cm: IP addresses and networks, comma-separated
MAX_HOPS: Final = 20


def find_client_address(direct: str, forwarded: str, proxies: str) -> str:
    """Return the last hop that is not a trusted proxy."""
    address = direct
    for hop in reversed(forwarded.split(",")[-MAX_HOPS:] if proxies else ()):
        if not is_trusted_proxy(address, proxies) or not _parse_address(hop.strip()):
            break
        address = hop.strip()
    return address


@lru_cache(maxsize=256)
def is_trusted_proxy(text: str, proxies: str) -> bool:
    """True if the address is in one of the networks."""
    address = _parse_address(text)
    return address is not None and any(address in network for network in _parse_networks(proxies))


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


@lru_cache(maxsize=8)
def _parse_networks(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Parse networks; an invalid entry trusts nobody."""
    networks = []
    for network in text.split(","):
        try:
            networks.append(ipaddress.ip_network(network.strip(), strict=False))
        except ValueError:
            continue
    return tuple(networks)
