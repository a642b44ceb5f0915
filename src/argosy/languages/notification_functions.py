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

_SCP: Final = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)(.+)")


def namespaces(now: datetime, commits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """argo: the same names and functions."""

    def commit(revision: Any) -> Any:
        found = (commits or {}).get(str(revision))
        if found is None:
            raise UserError(f"repo.GetCommitMetadata: unknown commit {str(revision)[:60]!r}; leave it out")
        if isinstance(found, dict) and isinstance(found.get("Date"), str):
            return {**found, "Date": go_time.parse_time(found["Date"])}
        return found

    return {
        "time": {
            "Parse": go_time.parse_time,
            "Now": lambda: go_time.Time(now),
            **{name: go_time.Duration(size) for name, size in go_time.UNITS.items()},
            **go_time.LAYOUTS,
        },
        "strings": {
            "ReplaceAll": lambda text, old, new: replaced(_text(text), _text(old), _text(new)),
            "ToUpper": lambda text: _text(text).upper(),
            "ToLower": lambda text: _text(text).lower(),
        },
        "repo": {
            "RepoURLToHTTPS": to_https,
            "FullNameByRepoURL": full_name,
            "QueryEscape": lambda text: quote_plus(_text(text)),
            "GetCommitMetadata": commit,
        },
    }


def replaced(text: str, old: str, new: str) -> str:
    """Replace within a size limit: an empty `old` matches between all characters."""
    if len(text) + (text.count(old) if old else len(text) + 1) * len(new) > 1 << 20:
        raise UserError("ReplaceAll produces too much text; replace less")
    return text.replace(old, new)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise UserError(f"expected a string, not {str(value)[:60]!r}; use a field with a string")


def _split(url: Any) -> tuple[str, str]:
    """Split any URL that git accepts into host and path."""
    text = _text(url)
    if "://" not in text and (found := _SCP.fullmatch(text)):
        return found[1], "/" + found[2].lstrip("/")
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise UserError(f"invalid repository URL {text[:60]!r} ({error}); correct it") from error
    return f"{parts.hostname or ''}{port}", parts.path


def to_https(url: Any) -> str:
    """argo: without the user name."""
    host, path = _split(url)
    return urlunsplit(("https", host, path, "", ""))


def full_name(url: Any) -> str:
    """argo: the first two parts of the path."""
    path = _split(url)[1].removesuffix(".git")
    parts = [part for part in path.split("/") if part]
    return "/".join(parts[:2]) if len(parts) >= 2 else path
