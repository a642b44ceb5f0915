"""Which hosts may be asked, and by which address.

In: a name, rules. Out: addresses to connect to. Never: an address that the rules refuse, whatever a name server says.
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
LOCAL: Final = ".localhost"  # rfc6761: all such names are this machine, whether or not it can look them up


@dataclass(frozen=True)
class HostRules:
    """`allowed` are globs such as `*.slack.com`; none: every host. Link-local ones never are."""

    allowed: tuple[str, ...] = ()

    def addresses(self, host: str, port: int) -> Sequence[tuple[str, int]]:
        if self.allowed and not any(fnmatch.fnmatchcase(host.lower(), each.lower()) for each in self.allowed):
            known = ", ".join(self.allowed)
            raise PolicyError(f"{host}: no host that may be asked; add it to notifications.hosts (now: {known})")
        try:
            found = socket.getaddrinfo(LOOPBACK if host.endswith(LOCAL) else host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise TransientError(f"{host}: not found ({error}); see whether the name is right") from error
        usable = [(str(each[4][0]), int(each[4][1])) for each in found if not _is_guarded(str(each[4][0]))]
        if not usable:
            raise PolicyError(f"{host}: its address is one of this machine's surroundings; name another host")
        return usable


def _is_guarded(address: str) -> bool:
    """Link-local: where clouds answer with the credentials of a machine."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_link_local or (mapped or found).is_multicast


ANYWHERE: Final = HostRules()
