"""Argo CD's functions for notification expressions and templates: `time`, `strings`, `repo`.

In: the current time, and known commits. Out: namespaces of functions. Never: does I/O: the caller provides commits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit, urlunsplit

from argosy.errors import UserError
from argosy.languages import go_time

_SCP_URL: Final = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)(.+)")


def build_function_namespaces(now: datetime, commits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """argo: the same names and functions."""

    def get_commit(revision: Any) -> Any:
        metadata = (commits or {}).get(str(revision))
        if metadata is None:
            raise UserError(f"repo.GetCommitMetadata: unknown commit {str(revision)[:60]!r}; leave it out")
        if isinstance(metadata, dict) and isinstance(metadata.get("Date"), str):
            return {**metadata, "Date": go_time.parse_time(metadata["Date"])}
        return metadata

    return {
        "time": {
            "Parse": go_time.parse_time,
            "Now": lambda: go_time.GoTime(now),
            **{name: go_time.GoDuration(size) for name, size in go_time.UNIT_NANOSECONDS.items()},
            **go_time.LAYOUTS,
        },
        "strings": {
            "ReplaceAll": lambda text, old, new: replace_all(
                _require_string(text), _require_string(old), _require_string(new)
            ),
            "ToUpper": lambda text: _require_string(text).upper(),
            "ToLower": lambda text: _require_string(text).lower(),
        },
        "repo": {
            "RepoURLToHTTPS": repository_url_to_https,
            "FullNameByRepoURL": repository_full_name,
            "QueryEscape": lambda text: quote_plus(_require_string(text)),
            "GetCommitMetadata": get_commit,
        },
    }


def replace_all(text: str, old: str, new: str) -> str:
    """Replace within a size limit: an empty `old` matches between all characters."""
    if len(text) + (text.count(old) if old else len(text) + 1) * len(new) > 1 << 20:
        raise UserError("ReplaceAll produces too much text; replace less")
    return text.replace(old, new)


def _require_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise UserError(f"expected a string, not {str(value)[:60]!r}; use a field with a string")


def _split_repository_url(url: Any) -> tuple[str, str]:
    """Split any URL that git accepts into host and path."""
    text = _require_string(url)
    if "://" not in text and (match := _SCP_URL.fullmatch(text)):
        return match[1], "/" + match[2].lstrip("/")
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise UserError(f"invalid repository URL {text[:60]!r} ({error}); correct it") from error
    return f"{parts.hostname or ''}{port}", parts.path


def repository_url_to_https(url: Any) -> str:
    """argo: without the user name."""
    host, path = _split_repository_url(url)
    return urlunsplit(("https", host, path, "", ""))


def repository_full_name(url: Any) -> str:
    """argo: the first two parts of the path."""
    path = _split_repository_url(url)[1].removesuffix(".git")
    parts = [part for part in path.split("/") if part]
    return "/".join(parts[:2]) if len(parts) >= 2 else path
