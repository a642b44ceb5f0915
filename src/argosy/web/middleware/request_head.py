"""Head of a request: checks its limits and its Host header, and finds the address of the client.

In: an ASGI scope. Out: headers by name, an IP address. Never: reads a body.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.web import request_limits
from argosy.web.middleware import client_address, host_check
from argosy.web.request import RequestRejected
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site

Scope = MutableMapping[str, Any]
CLIENT_GONE_EXTENSION: Final = "argosy.client_gone"  # ASGI extension: tells if the client reset its request


def get_raw_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def read_headers(scope: Scope, options: ServeOptions) -> dict[str, str]:
    """Return the headers, names in lower case; raise RequestLimitExceeded or RequestRejected."""
    raw_path = get_raw_path(scope)
    request_limits.check_request_head(raw_path.encode("latin-1"), scope["query_string"], scope["headers"])
    hosts = _get_all(scope, b"host")
    is_known_host = host_check.is_known_host(hosts, options.hosts, is_loopback=options.is_loopback)
    if not is_known_host and raw_path not in host_check.PROBE_PATHS:
        raise RequestRejected(
            "unknown Host header; use the configured hostname, or start the server with --hostname", 421
        )
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def is_client_gone(scope: Scope) -> bool:
    """True if the client reset its request; over HTTP/1.1, it is not known while the request runs."""
    is_gone = scope.get("extensions", {}).get(CLIENT_GONE_EXTENSION)
    return is_gone is not None and is_gone()


def find_peer(site: Site, scope: Scope) -> str:
    """Find the IP address of the client."""
    direct = scope["client"][0] if scope.get("client") else ""
    forwarded = ",".join(_get_all(scope, b"x-forwarded-for"))
    return client_address.find_client_address(direct, forwarded, _get_proxies(site))


def is_trusted_proxy(site: Site, address: str) -> bool:
    return client_address.is_trusted_proxy(address, _get_proxies(site))


def _get_proxies(site: Site) -> str:
    settings = site.cluster_view.cache.get(ResourceKey(*CONFIG_MAP, site.service.control_namespace, "argosy-cm"))
    return str(((settings or {}).get("data") or {}).get(client_address.PROXIES_SETTING) or "")


def _get_all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for header, value in scope["headers"] if header.lower() == name]
