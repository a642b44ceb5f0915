"""Selects the HTTP proxy for a server.

In: a URL, the environment. Out: a proxy URL or an empty string. Never: raises anything but UserError for a malformed
URL.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from argosy.errors import UserError


def find_proxy(server: str, proxy_url: str = "", env: Mapping[str, str] = os.environ) -> str:
    """Return `proxy_url` if given, else HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY matches the host."""
    proxy = proxy_url or _find_environment_proxy(server, env)
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and not proxy.startswith(("http://", "https://")):
        raise UserError(f"a {proxy.split('://')[0]} proxy is not supported: use http or https", where="proxy-url")
    return proxy


def split_server_url(server: str) -> SplitResult:
    """Split the URL of a server. Raises UserError if it is malformed."""
    try:
        parts = urlsplit(server)
        _ = parts.port
    except ValueError as error:  # invalid brackets or port
        raise UserError("server is not a valid URL; write it as https://host:6443", where="server") from error
    return parts


def _find_environment_proxy(server: str, env: Mapping[str, str]) -> str:
    parts = split_server_url(server)
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = env.get(name) or env.get(name.lower()) or ""
    if not proxy or is_loopback(parts.hostname or ""):
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    excluded = (env.get("NO_PROXY") or env.get("no_proxy") or "").split(",")
    return (
        "" if any(_matches_no_proxy(rule.strip().lower(), parts.hostname or "", port) for rule in excluded) else proxy
    )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _matches_no_proxy(rule: str, host: str, port: int) -> bool:
    """k8s: match NO_PROXY like Go: `*`, an address, a network, a name, a `.suffix`, each with or without `:port`."""
    if rule in ("", "*"):
        return rule == "*"
    if "/" in rule:
        return _is_in_network(rule, host)
    name, colon, only_port = rule.rpartition(":")
    if colon and only_port.isdigit() and (":" not in name or name.startswith("[")):
        if int(only_port) != port:
            return False
        rule = name
    rule = rule.strip("[]").removeprefix("*")
    return host == rule or host.endswith(rule if rule.startswith(".") else f".{rule}")


def _is_in_network(rule: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False
