"""Globs of repositories, matched against canonical addresses.

In: a pattern of sourceRepos, the address of a repository. Out: whether they match. Never: another answer for another
spelling of the same address; raises.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from argosy.language.globs import matches
from argosy.model.errors import UserError
from argosy.model.repository_url import DEFAULT_PORTS, RepositoryUrl, parse_url

_URL: Final = re.compile(r"(?P<scheme>[^:/@]+)://(?P<authority>[^/]*)(?P<path>.*)", re.DOTALL)
_SCP: Final = re.compile(r"(?P<authority>(?:[^:/]+@)?[^:/@]+):(?!//)(?P<path>.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_GLOB_SIGNS: Final = frozenset("*?[]{}\\,!")
_MAX_KNOWN: Final = 4_096


class RepositoryPattern(NamedTuple):
    glob: str
    user: str = ""  # of ssh; empty: any


class Address(NamedTuple):
    """The address of a repository as patterns see it."""

    text: str
    user: str = ""
    is_parsed: bool = True  # False: nothing can be fetched from it


@lru_cache(_MAX_KNOWN)
def read_address(url: str) -> Address:
    try:
        found: RepositoryUrl = parse_url(url)
    except UserError:
        return Address(_normalize(url), is_parsed=False)
    return Address(found.canonical, found.user if found.scheme == "ssh" else "")


@lru_cache(_MAX_KNOWN)
def read_pattern(text: str) -> RepositoryPattern:
    """A glob in the spelling of canonical addresses."""
    text = text.strip()
    if text.startswith(("/", "file:")):
        return RepositoryPattern(_join_path(re.sub(r"^file:(//(localhost)?(?=/))?", "", text), is_lower=False))
    if found := _URL.fullmatch(text) or _SCP.fullmatch(text):
        scheme = found.groupdict().get("scheme", "ssh").lower()
        user, _, host = found["authority"].rpartition("@")
        host = host.lower().removesuffix(f":{DEFAULT_PORTS.get(scheme, '')}").removesuffix(":")
        glob = f"{scheme}://{host}{_join_path(found['path'], is_lower=True)}"
        return RepositoryPattern(glob, user.lower() if scheme == "ssh" else "")
    return RepositoryPattern(_normalize(text))


def fits(pattern: str, address: Address) -> bool:
    """`pattern` may begin with `!`; a denial counts for every user of the host."""
    wanted = read_pattern(pattern.removeprefix("!"))
    if wanted.glob == "*":
        return True
    if wanted.user and not pattern.startswith("!") and not matches(wanted.user, address.user.lower()):
        return False
    return matches(wanted.glob, address.text, by_segment=True)


def is_selected(patterns: tuple[str, ...], address: Address) -> bool:
    """argo: one glob that matches selects, one with `!` that matches excludes; a star crosses slashes here."""
    matching = [
        pattern for pattern in patterns if matches(read_pattern(pattern.removeprefix("!")).glob, address.text)
    ]
    return bool(matching) and not any(pattern.startswith("!") for pattern in matching)


def _join_path(path: str, *, is_lower: bool) -> str:
    segments = [_decode(segment) if is_lower else segment for segment in path.split("/") if segment]
    if not segments:
        return ""
    joined = "/".join(segments)
    joined = joined.lower() if is_lower else joined
    return "/" + (joined.removesuffix(".git") if segments[-1].lower() != ".git" else joined)


def _decode(segment: str) -> str:
    """Percent-encoding undone; a decoded sign of globs stands for itself."""

    def decode(found: re.Match[str]) -> str:
        text = bytes.fromhex(found[0].replace("%", "")).decode(errors="surrogateescape")
        return "".join(f"\\{char}" if char in _GLOB_SIGNS else char for char in text)

    return _ESCAPED.sub(decode, segment)


def _normalize(url: str) -> str:
    """argo: the case of an address, a slash and `.git` at its end do not matter."""
    return url.strip().lower().removesuffix("/").removesuffix(".git")
