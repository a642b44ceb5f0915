"""Parses URLs of remote bases and files. In: text of a kustomization. Out: URL, ref and path.

Never: uses the network.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SCHEMES: Final = ("ssh://", "https://", "http://", "file://")
# As text, compiled on use: most builds have no remote bases.
_USER_PREFIX: Final = r"[a-zA-Z][a-zA-Z0-9-]*@"
_GITHUB_RAW_URL: Final = r"https?://raw\.githubusercontent\.com/([^/]+)/([^/]+)/(refs/(?:heads|tags)/[^/]+|[^/]+)/(.+)"
_GITHUB_FILE_URL: Final = (
    r"https?://(?:www\.)?github\.com/([^/]+)/([^/]+)/(?:raw|blob)/(refs/(?:heads|tags)/[^/]+|[^/]+)/(.+)"
)
_GITLAB_FILE_URL: Final = r"(https?://[^/]+/.+?)/-/(?:raw|blob)/([^/]+)/(.+)"
_URL_WITH_PASSWORD: Final = r"(?i:(?:git::)?[a-z]+://[^/@]*:[^/@]*@)"  # user name and password
_FILE_URL: Final = r"(?i:https?://.+\.(?:ya?ml|json))"


class RemoteBase(NamedTuple):
    """A folder or a file of a repository at a ref."""

    url: str
    ref: str
    path: str
    is_file: bool = False


def parse_remote(text: str) -> RemoteBase | None:
    """Parse a URL of another repository; None for a local path."""
    if hosted_file := _parse_hosted_file(text):
        return hosted_file
    address, _, query = text.partition("?")
    host, path = _split_host(address)
    if not host:
        return None
    parts = _split_repository_path(path, takes_all=host.startswith("file://"))
    if parts is None:
        return None
    repository, folder = parts
    return RemoteBase(host + repository, _read_ref(query), folder.strip("/"))


def is_local_path(text: str) -> bool:
    """True if the text is obviously a local path."""
    return (
        not any(character in text for character in ":@?")
        and ".git//" not in text
        and text[:11].lower() != "github.com/"
    )


def is_unversioned_file_url(text: str) -> bool:
    """True if the URL is a file that belongs to no known repository."""
    address = text.partition("?")[0]
    has_repository_marker = "//" in address.partition("://")[2] or ".git/" in address or "_git/" in address
    is_release_download = "/releases/download/" in address
    return not _parse_hosted_file(text) and (
        is_release_download or (bool(re.fullmatch(_FILE_URL, address)) and not has_repository_marker)
    )


def has_password(text: str) -> bool:
    return bool(re.match(_URL_WITH_PASSWORD, text))


def looks_remote(text: str) -> bool:
    """True if the text looks like a remote repository, even in a form that kustomize does not know."""
    return "://" in text or "?ref=" in text or ".git//" in text


def _parse_hosted_file(text: str) -> RemoteBase | None:
    from urllib.parse import unquote

    address = text.partition("?")[0]
    if not address.startswith("http"):
        return None
    for pattern in (_GITHUB_RAW_URL, _GITHUB_FILE_URL):
        if match := re.fullmatch(pattern, address):
            owner, name, ref, path = match.groups()
            return RemoteBase(f"https://github.com/{owner}/{name}", ref, unquote(path), is_file=True)
    if match := re.fullmatch(_GITLAB_FILE_URL, address):
        return RemoteBase(match[1], match[2], unquote(match[3]), is_file=True)
    return None


def _split_host(text: str) -> tuple[str, str]:
    """Split off the host, in the form that git accepts; empty if there is none."""
    if text[:5].lower() == "git::":
        text = text[5:]
    scheme = next((known_scheme for known_scheme in _SCHEMES if text[: len(known_scheme)].lower() == known_scheme), "")
    text = text[len(scheme) :]
    if scheme == "file://":
        return scheme, text
    user = match[0] if (match := re.match(_USER_PREFIX, text)) else ""
    text = text[len(user) :]
    is_github = text[:11].lower() in ("github.com/", "github.com:")
    is_short = not scheme and bool(user or is_github)
    if not scheme and not is_short:
        return "", text
    end = _find_host_end(text, is_short)
    if end < 0:
        return "", text
    host, path = text[: end + 1], text[end + 1 :]
    if is_github:
        return (f"{user}github.com:" if user or scheme == "ssh://" else "https://github.com/"), path
    return f"{scheme}{user}{host}", path


def _find_host_end(text: str, is_short: bool) -> int:
    slash, colon = text.find("/"), text.find(":")
    return colon if is_short and colon > 0 and (slash < 0 or colon < slash) else slash


def _split_repository_path(path: str, *, takes_all: bool) -> tuple[str, str] | None:
    """Split into the repository's path and the folder in it, by kustomize's separators, in its order."""
    if "_git/" in path:
        prefix, _, remainder = path.partition("_git/")
        name, _, folder = remainder.partition("/")
        return f"{prefix}_git/{name}", folder
    if "//" in path:
        repository, _, folder = path.partition("//")
    elif ".git" in path:
        prefix, _, folder = path.partition(".git")
        repository = f"{prefix}.git"
    elif takes_all:
        repository, folder = path, ""
    else:
        steps = path.split("/")
        if len(steps) < 2:
            return None
        repository, folder = "/".join(steps[:2]), "/".join(steps[2:])
    return (repository, folder) if repository else None


def _read_ref(query: str) -> str:
    from urllib.parse import parse_qs

    parameters = parse_qs(query)
    return (parameters.get("ref") or parameters.get("version") or ["HEAD"])[0]
