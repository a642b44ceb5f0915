"""Parses cluster addresses into one canonical spelling.

In: the `server` of a destination or a cluster Secret. Out: a ClusterAddress, and its usual spellings, for matching
patterns. Never: raises.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NewType

from argosy.errors import UserError
from argosy.gitops.application.repository_url_parser import canonical_host

_DEFAULT_PORTS: Final = {"https": "443", "http": "80"}
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)", re.DOTALL)
_UNRESERVED: Final = re.compile(r"%(2[dDeE]|3[0-9]|4[1-9A-Fa-f]|5[0-9aAfF]|6[1-9A-Fa-f]|7[0-9aAeE])")

ClusterAddress = NewType("ClusterAddress", str)  # canonical; created only by this module
NO_CLUSTER: Final = ClusterAddress("")


@lru_cache(4_096)
def parse_cluster_address(text: str) -> ClusterAddress:
    """Lower-case scheme and host; drop the default port, the user and empty path segments. Other text stays."""
    text = text.strip()
    match = _URL.fullmatch(text)
    if match is None:
        return ClusterAddress(text.rstrip("/"))
    scheme = match["scheme"].lower()
    host, port = _split_port(match["authority"].rpartition("@")[2])
    try:
        host = canonical_host(host.removesuffix("."))
    except UserError:  # not a valid cluster address
        host = host.lower()
    port = str(int(port)) if port.isascii() and port.isdecimal() and len(port) < 10 else port
    suffix = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    path = "".join(f"/{segment}" for segment in match["path"].split("/") if segment)
    return ClusterAddress(f"{scheme}://{host}{suffix}{_UNRESERVED.sub(_decode_percent, path)}")


def list_spellings(address: ClusterAddress) -> tuple[str, ...]:
    """Return the usual spellings: with and without the default port and a trailing slash."""
    match = _URL.fullmatch(address)
    if match is None:
        return (address,)
    scheme, authority, path = match["scheme"], match["authority"], match["path"]
    has_port = bool(_split_port(authority)[1])
    default = _DEFAULT_PORTS.get(scheme)
    authorities = [authority] if has_port or default is None else [authority, f"{authority}:{default}"]
    return tuple(
        f"{scheme}://{spelled_authority}{path}{slash}" for spelled_authority in authorities for slash in ("", "/")
    )


def _split_port(authority: str) -> tuple[str, str]:
    host, colon, port = authority.rpartition(":")
    return (host, port) if colon and not port.endswith("]") else (authority, "")


def _decode_percent(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))
