"""Addresses of clusters in one spelling.

In: what somebody wrote as a server. Out: a ClusterAddress. Never: raises; two spellings of one address.
"""

from __future__ import annotations

import re
from typing import Final, NewType

from argosy.model.errors import UserError
from argosy.model.repository_url import canonical_host

_DEFAULT_PORTS: Final = {"https": "443", "http": "80"}
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)", re.DOTALL)


ClusterAddress = NewType("ClusterAddress", str)  # canonical; only the functions of this module make one
NO_CLUSTER: Final = ClusterAddress("")


def parse_cluster_address(text: str) -> ClusterAddress:
    """Scheme and host in lower case, no default port, no user, no slash at the end. Other text stays as it is."""
    text = text.strip()
    match = _URL.fullmatch(text)
    if match is None:
        return ClusterAddress(text.rstrip("/"))
    scheme = match["scheme"].lower()
    host, port = _split_port(match["authority"].rpartition("@")[2])
    try:
        host = canonical_host(host)
    except UserError:  # no cluster has this address
        host = host.lower()
    port = port.lstrip("0") if port.isdecimal() else port
    suffix = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return ClusterAddress(f"{scheme}://{host}{suffix}{match['path'].rstrip('/')}")


def cluster_pattern(text: str) -> ClusterAddress:
    """A glob of a project or window, spelled as the addresses that it is matched against."""
    sign = "!" if text.startswith("!") else ""
    return ClusterAddress(sign + parse_cluster_address(text.removeprefix("!")))


def _split_port(authority: str) -> tuple[str, str]:
    host, colon, port = authority.rpartition(":")
    return (host, port) if colon and not port.endswith("]") else (authority, "")
