"""Guarded model requests from the web server (SSRF protection): cluster users control the URL.

In: a URL, a body. Out: the response. Never: connects to a cloud metadata address, or to the server's own machine
unless the server listens on loopback only.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.errors import PolicyError
from argosy.http_client.allowed_host_request import OutboundRequest, send_request
from argosy.http_client.allowed_hosts import HostRules
from argosy.http_client.anonymous_request import PlainResponse

JSON_HEADERS = (("Content-Type", "application/json"),)


@dataclass(frozen=True)
class _RemoteHostsOnly(HostRules):
    def resolve_addresses(self, host: str, port: int) -> Sequence[tuple[str, int]]:
        addresses = [address for address in super().resolve_addresses(host, port) if not _is_own_machine(address[0])]
        if not addresses:
            raise PolicyError(f"{host}resolves to the server's own machine; argosy does not send model requests there")
        return addresses


def send_guarded_request(
    url: str, document: Any = None, *, timeout_seconds: float = 30.0, insecure: bool = False, is_local: bool = False
) -> PlainResponse:
    body = b"" if document is None else json.dumps(document).encode()
    rules = HostRules() if is_local else _RemoteHostsOnly()
    method, headers = ("POST", JSON_HEADERS) if body else ("GET", ())
    return send_request(OutboundRequest(method, url, headers, body, timeout_seconds, insecure), rules)


def _is_own_machine(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    ipv4 = getattr(ip, "ipv4_mapped", None)
    return (ipv4 or ip).is_loopback or (ipv4 or ip).is_unspecified
