"""Matches repository globs of projects against all usual spellings of a URL.

In: a pattern of a project, a repository URL. Out: whether it allows or denies the repository. Never: depends on the
spelling of the URL; raises.

A pattern is written for one spelling, so each spelling of the URL is matched. A denial is also matched without user,
port and percent-encoding.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application.repository_url_parser import DEFAULT_PORTS, RepositoryUrl, parse_url
from argosy.languages.globs import escape_glob, escape_ipv6, is_glob, matches_glob

_URL: Final = re.compile(r"(?P<scheme>[^:/@]+)://(?P<authority>[^/]*)(?P<path>.*)", re.DOTALL)
_SCP: Final = re.compile(r"(?P<authority>(?:[^:/]+@)?[^:/@]+):(?!//)(?P<path>.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_HTTP_USER: Final = re.compile(r"^(https?://)[^/@]*@")
_INNER_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_MAX_ALTERNATIVES: Final = 200
_MAX_CACHED: Final = 4_096


class RepositorySpellings(NamedTuple):
    """A repository URL, as patterns see it."""

    allowed_as: tuple[str, ...]  # spellings of this repository with the same user
    denied_as: tuple[str, ...]  # these, and spellings with other users
    is_parsed: bool = True  # False: the URL is invalid, and nothing can be fetched


@lru_cache(_MAX_CACHED)
def read_repository_spellings(url: str) -> RepositorySpellings:
    try:
        parsed = parse_url(url)
    except UserError:
        text = _normalize(url)
        return RepositorySpellings((text,), (text,), is_parsed=False)
    return RepositorySpellings(
        _list_spellings(parsed, [parsed.user]), _list_spellings(parsed, [parsed.user, "", "git"])
    )


def is_allowed_by(pattern: str, address: RepositorySpellings) -> bool:
    """argo: one star does not cross slashes, two stars do."""
    glob = _normalize(pattern)
    return glob == "*" or any(matches_glob(glob, text, by_segment=True) for text in address.allowed_as)


def is_denied_by(pattern: str, address: RepositorySpellings) -> bool:
    """Match a pattern with `!` before it. An invalid glob denies every repository."""
    return any(
        glob == "*" or not is_glob(glob) or any(matches_glob(glob, text, by_segment=True) for text in address.denied_as)
        for glob in _list_denial_globs(pattern.removeprefix("!"))
    )


def is_selected(patterns: tuple[str, ...], address: RepositorySpellings) -> bool:
    """argo: for source integrity one matching glob selects, one with `!` excludes; a star crosses slashes."""
    selecting = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluding = [_normalize(pattern[1:]) for pattern in patterns if pattern.startswith("!")]
    if any(matches_glob(glob, text) for glob in excluding for text in address.allowed_as):
        return False
    globs = [glob for pattern in selecting for glob in _list_denial_globs(pattern)]
    return any(not is_glob(glob) or any(matches_glob(glob, text) for text in address.denied_as) for glob in globs)


def _list_spellings(url: RepositoryUrl, users: list[str]) -> tuple[str, ...]:
    """Lower case, with and without `.git` and default port; for ssh also `user@host:path` and `user@host/path`."""
    path = "/".join(url.segments)
    if url.scheme == "file":
        return tuple(f"{start}/{path}{end}" for start in ("", "file://") for end in ("", ".git"))
    default = DEFAULT_PORTS[url.scheme]
    hosts = [url.host, f"{url.host}:{default}"] if url.port == default else [f"{url.host}:{url.port}"]
    spellings = []
    for user in dict.fromkeys(user.lower() for user in users if url.scheme == "ssh" or not user) or [""]:
        user_prefix = f"{user}@" if user else ""
        spellings += [f"{url.scheme}://{user_prefix}{host}/{path}" for host in hosts]
        if url.scheme == "ssh" and url.port == default:
            spellings += [f"{user_prefix}{url.host}:{path}", f"{user_prefix}{url.host}/{path}"]
    return tuple(text + end for text in spellings for end in ("", ".git"))


@lru_cache(_MAX_CACHED)
def _list_denial_globs(pattern: str) -> tuple[str, ...]:
    """Return the glob as written, and each of its alternatives in canonical spelling."""
    alternatives = _expand_braces(pattern)
    return tuple(dict.fromkeys([_normalize(pattern), *map(_canonicalize, alternatives)]))


def _canonicalize(pattern: str) -> str:
    """Remove user, default port, empty path segments and percent-encoding."""
    pattern = pattern.strip()
    if pattern.startswith(("/", "file:")):
        return _join_path(re.sub(r"^file:(//(localhost)?(?=/))?", "", pattern), is_lower=False)
    if match := _URL.fullmatch(pattern) or _SCP.fullmatch(pattern):
        scheme = match.groupdict().get("scheme", "ssh").lower()
        host = match["authority"].rpartition("@")[2].lower()
        host = host.removesuffix(f":{DEFAULT_PORTS.get(scheme, '')}").removesuffix(":")
        return escape_ipv6(f"{scheme}://{host}{_join_path(match['path'], is_lower=True)}")
    return _normalize(pattern)


def _expand_braces(pattern: str) -> list[str]:
    """Expand alternatives in braces; the pattern itself if there are none, or too many."""
    patterns = [pattern]
    while len(patterns) <= _MAX_ALTERNATIVES and any(_INNER_BRACES.search(candidate) for candidate in patterns):
        patterns = [
            candidate[: braces.start()] + choice + candidate[braces.end() :] if braces else candidate
            for candidate in patterns
            for braces in [_INNER_BRACES.search(candidate)]
            for choice in (braces[1].split(",") if braces else [""])
        ]
    return patterns


def _join_path(path: str, *, is_lower: bool) -> str:
    segments = [_decode_percent(segment) if is_lower else segment for segment in path.split("/") if segment]
    if not segments:
        return ""
    joined = "/".join(segments)
    joined = joined.lower() if is_lower else joined
    return "/" + (joined.removesuffix(".git") if segments[-1].lower() != ".git" else joined)


def _decode_percent(segment: str) -> str:
    """Undo percent-encoding; a decoded special character of globs is escaped."""

    def decode(match: re.Match[str]) -> str:
        text = bytes.fromhex(match[0].replace("%", "")).decode(errors="surrogateescape")
        return escape_glob(text)

    return _ESCAPED.sub(decode, segment)


def _normalize(text: str) -> str:
    """argo: the case of a URL, and a slash or `.git` at its end, do not matter."""
    text = text.strip()
    if text.startswith(("/", "file:")):
        return text.removesuffix("/").removesuffix(".git")
    text = _HTTP_USER.sub(r"\1", text.lower())
    return escape_ipv6((text.removesuffix("/") if ":" in text else text).removesuffix(".git"))
