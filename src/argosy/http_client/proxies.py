"""Chooses the proxy for a request.

In: a URL's scheme, host and port; a proxy of the request, else the variables of the environment. Out: a Proxy, or None.
Never: connects; puts a proxy's address into a message, because it may contain a password.
"""

from __future__ import annotations

import base64
import ipaddress
import urllib.request
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from argosy.errors import UserError


class Proxy(NamedTuple):
    host: str
    port: int
    headers: dict[str, str]  # with the proxy's own credentials


def choose_proxy(scheme: str, host: str, port: int, proxy: str = "", no_proxy: str = "") -> Proxy | None:
    """Return the proxy for a host. `proxy` and `no_proxy` of the request replace those of the environment."""
    if not proxy:
        variables = urllib.request.getproxies_environment()
        proxy, no_proxy = variables.get(scheme) or variables.get("all") or "", variables.get("no", "")
    if not proxy or bypasses_proxy(host, port, no_proxy):
        return None
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        address, proxy_port = parts.hostname, parts.port
    except ValueError:
        raise UserError("the proxy's address is invalid; write it as http://host:port") from None
    if parts.scheme != "http" or not address:
        raise UserError("the proxy is not supported; use one at http://host:port")
    if not parts.username:
        return Proxy(address, proxy_port or 80, {})
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return Proxy(address, proxy_port or 80, {"Proxy-Authorization": f"Basic {base64.b64encode(pair).decode()}"})


def bypasses_proxy(host: str, port: int, no_proxy: str) -> bool:
    """True if a list such as `.example.com,10.0.0.0/8,db:5432` names the host. As in Go, this machine always does."""
    address = _parse_address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in no_proxy.lower().replace(",", " ").split():
        name, _, entry_port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if entry_port and entry_port != str(port):
            continue
        if name == "*" or name in (host, f"[{host}]"):
            return True
        if address is not None:
            if _is_in_network(address, name):
                return True
        elif host.endswith("." + name.removeprefix("*").lstrip(".")):
            return True
    return False


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_in_network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, text: str) -> bool:
    try:
        return address in ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
