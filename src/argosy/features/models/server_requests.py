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
from argosy.http_client.allowed_hosts import HostRules
from argosy.http_client.checked_request import Request, send
from argosy.http_client.plain_request import Answered

JSON = (("Content-Type", "application/json"),)


@dataclass(frozen=True)
class _Elsewhere(HostRules):
    def addresses(self, host: str, port: int) -> Sequence[tuple[str, int]]:
        found = [each for each in super().addresses(host, port) if not _is_here(each[0])]
        if not found:
            raise PolicyError(f"{host}resolves to the server's own machine; argosy does not send model requests there")
        return found


def ask_warily(
    url: str, document: Any = None, *, seconds: float = 30.0, insecure: bool = False, is_local: bool = False
) -> Answered:
    body = b"" if document is None else json.dumps(document).encode()
    rules = HostRules() if is_local else _Elsewhere()
    method, headers = ("POST", JSON) if body else ("GET", ())
    return send(Request(method, url, headers, body, seconds, insecure), rules)


def _is_here(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback or (mapped or found).is_unspecified
