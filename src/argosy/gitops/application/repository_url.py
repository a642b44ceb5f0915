"""Addresses of repositories, taken apart.

In: what a user wrote as repoURL. Out: RepositoryUrl, or AddressRefused. Never: a password kept; a prefix
matched as text.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from argosy.errors import AddressRefused

LONGEST = 8192
DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
_SCP = re.compile(r"(?:(?P<user>[^@:/\[\]]+)@)?(?P<host>[^@:/\[\]]+):(?P<path>[^\\]*)")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_ENDS_IN_NUMBER = re.compile(r"(^|\.)(0x[0-9a-f]*|[0-9]+)$")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]*")


@dataclass(frozen=True, slots=True)
class RepositoryUrl:
    """Where a repository is. Its text is what git gets: it holds a user's name, never a password."""

    scheme: str  # https, http, ssh, file
    host: str
    port: int
    path: str
    user: str = ""
    is_scp: bool = False  # `git@host:path`, where the path begins at the user's home

    def __str__(self) -> str:
        if self.scheme == "file":
            return self.path
        if self.is_scp:
            return f"{self.user}@{self.host}:{self.path[1:]}" if self.user else f"{self.host}:{self.path[1:]}"
        # Only ssh is told the user: for https the name goes with the password, in a header.
        user = f"{self.user}@" if self.user and self.scheme == "ssh" else ""
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{user}{self.host}{port}{self.path}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names on the path; `.git` at the end means nothing."""
        parts = [part for part in self.path.split("/") if part]
        if parts and parts[-1] != ".git":
            parts[-1] = parts[-1].removesuffix(".git")
        return tuple(parts)

    @property
    def segments(self) -> tuple[str, ...]:
        """The same as they are compared: decoded, and in lower case."""
        if self.scheme == "file":  # argo: addresses are compared without regard to case; paths on this machine are not
            return self.parts
        segments = [decode_percent(part).lower() for part in self.path.split("/") if part]
        if segments and segments[-1] != ".git":
            segments[-1] = segments[-1].removesuffix(".git")
        return tuple(segments)

    @property
    def identity(self) -> tuple[str, str, int, tuple[str, ...]]:
        return self.scheme, self.host, self.port, self.segments

    @property
    def canonical(self) -> str:
        """One text for all spellings of an address, without a user: what policies are matched against."""
        path = "/".join(self.segments)
        if self.scheme == "file":
            return f"/{path}"
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}/{path}"

    def rest_after(self, prefix: RepositoryUrl) -> tuple[str, ...] | None:
        """The parts that follow the prefix; None where it is no prefix. `/org` is none of `/organisation`."""
        if self.identity[:3] != prefix.identity[:3] or (prefix.user and self.user and prefix.user != self.user):
            return None
        count = len(prefix.segments)
        return self.parts[count:] if self.segments[:count] == prefix.segments else None


def parse_url(text: str) -> RepositoryUrl:
    """Understands https://, http://, ssh://, file://, `user@host:path` and absolute paths."""
    text = text.strip(" ")
    if not text or len(text) > LONGEST:
        raise AddressRefused("the address of the repository is empty or too long; write it as https://host/path")
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise _refused("holds a control character")
    if "\\" in text or " " in text:
        raise _refused("holds a space or a backslash")
    if text.startswith("/"):
        return _checked("file", "", 0, text)
    if "://" in text:
        return _parse_split(text)
    if (scp := _SCP.fullmatch(text)) and not scp["path"].startswith(":"):
        return _checked("ssh", scp["host"], 22, "/" + scp["path"], scp["user"] or "", is_scp=True)
    raise _refused("is not of a form that is understood")


def is_same_repository(one: str, other: str) -> bool:
    """True for two spellings of one address; what cannot be parsed is only the same as itself."""
    if one == other:
        return True
    try:
        return parse_url(one).identity == parse_url(other).identity
    except AddressRefused:
        return False


def _parse_split(text: str) -> RepositoryUrl:
    try:
        parts = urlsplit(text)
        scheme, port, host = parts.scheme.lower(), parts.port, parts.hostname or ""
    except ValueError as error:
        raise _refused("is not well formed") from error
    if scheme == "file":
        if host not in ("", "localhost"):
            raise _refused("names a host, which file:// cannot reach")
        return _checked("file", "", 0, unquote(parts.path))
    if scheme not in DEFAULT_PORTS:
        raise _refused("uses a protocol that is not allowed")
    if parts.query or parts.fragment:
        raise _refused("holds a ? or a #")
    host = f"[{host}]" if ":" in host else host
    if parts.password is not None:
        raise _refused("holds a password, which everybody can read; put it into a Secret with the label "
                       "argocd.argoproj.io/secret-type: repository")  # fmt: skip
    return _checked(scheme, host, port or DEFAULT_PORTS[scheme], parts.path, unquote(parts.username or ""))


def _checked(scheme: str, host: str, port: int, path: str, user: str = "", *, is_scp: bool = False) -> RepositoryUrl:
    if scheme != "file" and not _HOST.fullmatch(host):
        raise _refused("has no valid host")
    if user and not _NAME.fullmatch(user):
        raise _refused("has a user that is no plain name")
    if any(ord(char) < 32 for char in path):
        raise _refused("holds a control character")
    segments = [decode_percent(part) for part in path.split("/")]
    if any(part in (".", "..") or (scheme != "file" and "/" in part) for part in segments):
        raise _refused("holds . or .. as a part of its path")
    if scheme != "file" and any(ord(char) < 32 or ord(char) == 127 for part in segments for char in part):
        raise _refused("holds a control character")
    # The first part of a path must not be taken for an option by what runs at the other end of ssh.
    if scheme == "ssh" and path.lstrip("/").startswith("-"):
        raise _refused("has a path that begins with a dash")
    return RepositoryUrl(scheme, canonical_host(host), port, path.rstrip("/") or "/", user, is_scp)


def canonical_host(host: str) -> str:
    """Lower case, and one spelling of an IP address. Raises AddressRefused for other numbers that name a host."""
    host = host.lower()
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise _refused("has no valid host") from None
        return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address}]"
    if _ENDS_IN_NUMBER.search(host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:  # 127.1, 0x7f000001 and 2130706433 are one host to whoever connects
            raise _refused("has a number for a host; write an IP address as four numbers") from None
    return host


def decode_percent(text: str) -> str:
    """Percent-encoding undone once, as a server does; bytes that are no text stay different from each other."""
    return unquote(text, errors="surrogateescape")


def _refused(why: str) -> AddressRefused:
    # The address itself is not repeated: what cannot be taken apart may hold a password anywhere.
    return AddressRefused(
        f"the address of the repository {why}; use https://host/path, ssh://git@host/path, git@host:path, "
        "or a path on this machine where that is allowed"
    )
