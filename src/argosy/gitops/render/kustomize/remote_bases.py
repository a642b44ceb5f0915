"""Parses URLs of remote bases and files. In: text of a kustomization. Out: URL, ref and path.

Never: uses the network.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SCHEMES: Final = ("ssh://", "https://", "http://", "file://")
# As text, compiled on use: most builds have no remote bases.
_USER: Final = r"[a-zA-Z][a-zA-Z0-9-]*@"
_RAW: Final = r"https?://raw\.githubusercontent\.com/([^/]+)/([^/]+)/(refs/(?:heads|tags)/[^/]+|[^/]+)/(.+)"
_GITHUB: Final = r"https?://(?:www\.)?github\.com/([^/]+)/([^/]+)/(?:raw|blob)/(refs/(?:heads|tags)/[^/]+|[^/]+)/(.+)"
_GITLAB: Final = r"(https?://[^/]+/.+?)/-/(?:raw|blob)/([^/]+)/(.+)"
_LOGIN: Final = r"(?i:(?:git::)?[a-z]+://[^/@]*:[^/@]*@)"  # user name and password
_FILE: Final = r"(?i:https?://.+\.(?:ya?ml|json))"


class Remote(NamedTuple):
    """A folder or a file of a repository at a ref."""

    url: str
    ref: str
    path: str
    is_file: bool = False


def remote_of(text: str) -> Remote | None:
    """Parse a URL of another repository; None for a local path."""
    if found := _hosted_file(text):
        return found
    rest, _, query = text.partition("?")
    host, path = _host(rest)
    if not host:
        return None
    parts = _parted(path, takes_all=host.startswith("file://"))
    if parts is None:
        return None
    repository, inside = parts
    return Remote(host + repository, _ref(query), inside.strip("/"))


def is_plain_path(text: str) -> bool:
    """True if the text is obviously a local path."""
    return not any(mark in text for mark in ":@?") and ".git//" not in text and text[:11].lower() != "github.com/"


def is_plain_file(text: str) -> bool:
    """True if the URL is a file that belongs to no known repository."""
    rest = text.partition("?")[0]
    marked = "//" in rest.partition("://")[2] or ".git/" in rest or "_git/" in rest
    downloads = "/releases/download/" in rest
    return not _hosted_file(text) and (downloads or (bool(re.fullmatch(_FILE, rest)) and not marked))


def has_password(text: str) -> bool:
    return bool(re.match(_LOGIN, text))


def looks_remote(text: str) -> bool:
    """True if the text looks like a remote repository, even in a form that kustomize does not know."""
    return "://" in text or "?ref=" in text or ".git//" in text


def _hosted_file(text: str) -> Remote | None:
    from urllib.parse import unquote

    address = text.partition("?")[0]
    if not address.startswith("http"):
        return None
    for pattern in (_RAW, _GITHUB):
        if found := re.fullmatch(pattern, address):
            owner, name, ref, path = found.groups()
            return Remote(f"https://github.com/{owner}/{name}", ref, unquote(path), is_file=True)
    if found := re.fullmatch(_GITLAB, address):
        return Remote(found[1], found[2], unquote(found[3]), is_file=True)
    return None


def _host(text: str) -> tuple[str, str]:
    """Split off the host, in the form that git accepts; empty if there is none."""
    if text[:5].lower() == "git::":
        text = text[5:]
    scheme = next((each for each in _SCHEMES if text[: len(each)].lower() == each), "")
    text = text[len(scheme) :]
    if scheme == "file://":
        return scheme, text
    user = found[0] if (found := re.match(_USER, text)) else ""
    text = text[len(user) :]
    is_github = text[:11].lower() in ("github.com/", "github.com:")
    is_short = not scheme and bool(user or is_github)
    if not scheme and not is_short:
        return "", text
    end = _end_of_host(text, is_short)
    if end < 0:
        return "", text
    host, rest = text[: end + 1], text[end + 1 :]
    if is_github:
        return (f"{user}github.com:" if user or scheme == "ssh://" else "https://github.com/"), rest
    return f"{scheme}{user}{host}", rest


def _end_of_host(text: str, is_short: bool) -> int:
    slash, colon = text.find("/"), text.find(":")
    return colon if is_short and colon > 0 and (slash < 0 or colon < slash) else slash


def _parted(path: str, *, takes_all: bool) -> tuple[str, str] | None:
    """Split into the repository's path and the folder in it, by kustomize's separators, in its order."""
    if "_git/" in path:
        lead, _, rest = path.partition("_git/")
        name, _, inside = rest.partition("/")
        return f"{lead}_git/{name}", inside
    if "//" in path:
        repository, _, inside = path.partition("//")
    elif ".git" in path:
        lead, _, inside = path.partition(".git")
        repository = f"{lead}.git"
    elif takes_all:
        repository, inside = path, ""
    else:
        steps = path.split("/")
        if len(steps) < 2:
            return None
        repository, inside = "/".join(steps[:2]), "/".join(steps[2:])
    return (repository, inside) if repository else None


def _ref(query: str) -> str:
    from urllib.parse import parse_qs

    given = parse_qs(query)
    return (given.get("ref") or given.get("version") or ["HEAD"])[0]
