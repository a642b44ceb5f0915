"""Parses repository URLs.

In: a repoURL as the user wrote it. Out: RepositoryUrl, or AddressRefused. Never: keeps a password; matches a prefix as
text.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from argosy.errors import AddressRefused
from argosy.kube.objects.short_text_result_cache import cache_short_texts

MAX_URL_LENGTH = 8192
MAX_CACHED_URLS = 2000
DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
_SCP = re.compile(r"(?:(?P<user>[^@:/\[\]]+)@)?(?P<host>[^@:/\[\]]+):(?P<path>[^\\]*)")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_ENDS_IN_NUMBER = re.compile(r"(^|\.)(0x[0-9a-f]*|[0-9]+)$")
_USER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]*")


@dataclass(frozen=True, slots=True)
class RepositoryUrl:
    """A repository URL. Its string form is passed to git: it may contain a user name, never a password."""

    scheme: str  # https, http, ssh, file
    host: str
    port: int
    path: str
    user: str = ""
    is_scp: bool = False  # `git@host:path`, relative to the user's home

    def __str__(self) -> str:
        if self.scheme == "file":
            return self.path
        if self.is_scp:
            return f"{self.user}@{self.host}:{self.path[1:]}" if self.user else f"{self.host}:{self.path[1:]}"
        # Only ssh URLs contain the user: for https the name is sent with the password, in a header.
        user = f"{self.user}@" if self.user and self.scheme == "ssh" else ""
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{user}{self.host}{port}{self.path}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The path segments, without `.git` at the end."""
        parts = [part for part in self.path.split("/") if part]
        if parts and parts[-1] != ".git":
            parts[-1] = parts[-1].removesuffix(".git")
        return tuple(parts)

    @property
    def segments(self) -> tuple[str, ...]:
        """The path segments for comparison: decoded and in lower case."""
        if self.scheme == "file":  # argo: URLs are compared case-insensitively; local paths are not
            return self.parts
        segments = [decode_percent(part).lower() for part in self.path.split("/") if part]
        if segments and segments[-1] != ".git":
            segments[-1] = segments[-1].removesuffix(".git")
        return tuple(segments)

    @property
    def identity(self) -> tuple[str, str, int, tuple[str, ...]]:
        return self.scheme, self.host, self.port, self.segments

    def is_same_login(self, other: RepositoryUrl) -> bool:
        """True if both are read from the same host, port and protocol, and as the same user."""
        return (self.scheme, self.host, self.port, self.user) == (other.scheme, other.host, other.port, other.user)

    @property
    def canonical(self) -> str:
        """One string for all spellings of a URL, without a user: policies are matched against it."""
        path = "/".join(self.segments)
        if self.scheme == "file":
            return f"/{path}"
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}/{path}"

    def segments_after(self, prefix: RepositoryUrl) -> tuple[str, ...] | None:
        """Return the segments after the prefix; None if it is no prefix. `/org` is no prefix of `/organisation`."""
        if self.identity[:3] != prefix.identity[:3] or (prefix.user and self.user and prefix.user != self.user):
            return None
        count = len(prefix.segments)
        return self.parts[count:] if self.segments[:count] == prefix.segments else None


@cache_short_texts(MAX_CACHED_URLS)  # each pass parses the URLs of its sources and of its project
def parse_url(text: str) -> RepositoryUrl:
    """Parse https://, http://, ssh://, file://, `user@host:path` and absolute paths."""
    text = text.strip(" ")
    if not text or len(text) > MAX_URL_LENGTH:
        raise AddressRefused("the repository URL is empty or too long; write it as https://host/path")
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise _build_error("contains a control character")
    if "\\" in text or " " in text:
        raise _build_error("contains a space or a backslash")
    if text.startswith("/"):
        return _build_checked("file", "", 0, text)
    if "://" in text:
        return _parse_with_scheme(text)
    if (scp := _SCP.fullmatch(text)) and not scp["path"].startswith(":"):
        return _build_checked("ssh", scp["host"], 22, "/" + scp["path"], scp["user"] or "", is_scp=True)
    raise _build_error("has an unknown form")


def is_same_repository(left: str, right: str) -> bool:
    """True for two spellings of one URL; URLs that cannot be parsed are equal only to themselves."""
    if left == right:
        return True
    try:
        return parse_url(left).identity == parse_url(right).identity
    except AddressRefused:
        return False


def _parse_with_scheme(text: str) -> RepositoryUrl:
    try:
        parts = urlsplit(text)
        scheme, port, host = parts.scheme.lower(), parts.port, parts.hostname or ""
    except ValueError as error:
        raise _build_error("is not well formed") from error
    if scheme == "file":
        if host not in ("", "localhost"):
            raise _build_error("names a host, which file:// does not support")
        return _build_checked("file", "", 0, unquote(parts.path))
    if scheme not in DEFAULT_PORTS:
        raise _build_error("uses a protocol that is not allowed")
    if parts.query or parts.fragment:
        raise _build_error("contains a ? or a #")
    host = f"[{host}]" if ":" in host else host
    if parts.password is not None:
        raise _build_error("contains a password, which everyone can read; put it into a Secret with the label "
                       "argocd.argoproj.io/secret-type: repository")  # fmt: skip
    return _build_checked(scheme, host, port or DEFAULT_PORTS[scheme], parts.path, unquote(parts.username or ""))


def _build_checked(
    scheme: str, host: str, port: int, path: str, user: str = "", *, is_scp: bool = False
) -> RepositoryUrl:
    if scheme != "file" and not _HOST.fullmatch(host):
        raise _build_error("has no valid host")
    if user and not _USER_NAME.fullmatch(user):
        raise _build_error("has an invalid user name")
    if any(ord(char) < 32 for char in path):
        raise _build_error("contains a control character")
    segments = [decode_percent(part) for part in path.split("/")]
    if any(part in (".", "..") or (scheme != "file" and "/" in part) for part in segments):
        raise _build_error("contains . or .. as a path segment")
    if scheme != "file" and any(ord(char) < 32 or ord(char) == 127 for part in segments for char in part):
        raise _build_error("contains a control character")
    # The server behind ssh must not take the path for an option.
    if scheme == "ssh" and path.lstrip("/").startswith("-"):
        raise _build_error("has a path that starts with a dash")
    return RepositoryUrl(scheme, canonical_host(host), port, path.rstrip("/") or "/", user, is_scp)


def canonical_host(host: str) -> str:
    """Return the host in lower case, with one spelling of an IP address.

    Raises AddressRefused for other numeric hosts.
    """
    host = host.lower()
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise _build_error("has no valid host") from None
        return str(address.ipv4_mapped) if address.ipv4_mapped else f"[{address}]"
    if _ENDS_IN_NUMBER.search(host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:  # 127.1, 0x7f000001 and 2130706433 all connect to the same host
            raise _build_error("has a numeric host; write an IP address as four numbers") from None
    return host


def decode_percent(text: str) -> str:
    """Undo percent-encoding once, as a server does; invalid UTF-8 bytes stay distinct."""
    return unquote(text, errors="surrogateescape")


def _build_error(problem: str) -> AddressRefused:
    # The URL itself is not repeated, because a malformed one may contain a password anywhere.
    return AddressRefused(
        f"the repository URL {problem}; use https://host/path, ssh://git@host/path, git@host:path, "
        "or a local path if that is allowed"
    )
