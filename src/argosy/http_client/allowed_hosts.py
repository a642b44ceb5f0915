"""Checks which hosts requests may be sent to, and resolves their addresses.

In: a host name, rules. Out: addresses to connect to. Never: returns a forbidden address, whatever DNS answers.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import PolicyError, TransientError

LOOPBACK: Final = "127.0.0.1"
LOCALHOST_SUFFIX: Final = ".localhost"  # RFC 6761: all such names are this machine, even if DNS does not know them


@dataclass(frozen=True)
class HostRules:
    """`allowed` are globs such as `*.slack.com`; empty: every host. Link-local addresses are never allowed."""

    allowed: tuple[str, ...] = ()

    def resolve_addresses(self, host: str, port: int) -> Sequence[tuple[str, int]]:
        if self.allowed and not any(fnmatch.fnmatchcase(host.lower(), item.lower()) for item in self.allowed):
            allowed_list = ", ".join(self.allowed)
            raise PolicyError(f"{host}: host is not allowed; add it to notifications.hosts (now: {allowed_list})")
        try:
            results = socket.getaddrinfo(
                LOOPBACK if host.endswith(LOCALHOST_SUFFIX) else host, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as error:
            raise TransientError(f"{host}: not found ({error}); check the name") from error
        usable = [(str(item[4][0]), int(item[4][1])) for item in results if not _is_forbidden_address(str(item[4][0]))]
        if not usable:
            raise PolicyError(f"{host}: resolves to a link-local or multicast address; use another host")
        return usable


def _is_forbidden_address(address: str) -> bool:
    """True for link-local and multicast: cloud metadata services return credentials at link-local addresses."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_link_local or (mapped or parsed).is_multicast


ALLOW_ALL_HOSTS: Final = HostRules()
