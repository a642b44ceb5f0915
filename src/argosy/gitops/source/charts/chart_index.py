"""Reads the index of a Helm repository.

In: the text of index.yaml. Out: the versions of one chart, or the names of all. Never: parses the charts that are not
asked for, if that can be avoided: an index may have tens of thousands of entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import orjson

from argosy.errors import CorruptSource, LimitError, ManifestError, UnknownRef
from argosy.gitops.source.version_ranges import SemanticVersion, VersionRange, parse_range, parse_version
from argosy.kube.objects import read_yaml
from argosy.kube.objects.input_limits import InputLimits, check_depth

MAX_INDEX_BYTES: Final = 64 << 20
MAX_JSON_SIGNS: Final = 2_000_000  # brackets, commas and colons of an index in JSON, which is parsed as a whole
_INDEX_LIMITS: Final = InputLimits(size=MAX_INDEX_BYTES)
_ENTRIES: Final = re.compile(rb"^entries:[ \t]*\r?$", re.MULTILINE)
_FIRST_KEY: Final = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\r?\n)+( +)[^\s#-]")
_SHA256: Final = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")


class ChartVersion(NamedTuple):
    """One entry of the index. `url` may be relative to the repository."""

    version: str
    url: str
    digest: str = ""  # SHA-256 of the archive; empty if the index has none


def list_chart_versions(index: bytes, chart: str, where: str) -> list[ChartVersion]:
    """Return the usable versions of a chart, in the order of the index. Raises UnknownRef if it has no such chart."""
    entries = _read_entries(_cut_chart(index, chart) or index, where)
    if chart not in entries:
        raise UnknownRef(f"chart '{chart}' not found in index; correct its name, or publish it", where=where)
    items = entries[chart] if isinstance(entries[chart], list) else []
    return [version for item in items if (version := _read_version(item)) is not None]


def check_index(index: bytes, where: str) -> None:
    """Raise CorruptSource if the text is not the index of a Helm repository."""
    if not _ENTRIES.search(index):
        _read_entries(index, where)


def list_charts(index: bytes, where: str) -> dict[str, list[str]]:
    """Return the versions of all charts by name."""
    return {
        str(chart): [version.version for item in items if (version := _read_version(item)) is not None]
        for chart, items in _read_entries(index, where).items()
        if isinstance(items, list)
    }


def resolve_version(ref: str, versions: Iterable[str]) -> str | None:
    """Return the version that a targetRevision selects, None if there is none.

    argo: a version is a pin, and is not looked up. A range selects its newest version; other text must be in the index.
    """
    if parse_version(ref):
        return ref
    if version_range := parse_range(ref):
        return _find_newest(versions, version_range)
    return ref if ref in versions else None


def find_chart_version(versions: Iterable[ChartVersion], version: str) -> ChartVersion | None:
    """Return the entry that Helm downloads: of that very version, else the newest that it admits: 1.2 admits 1.2.5."""
    entries = {entry.version: entry for entry in reversed(list(versions))}  # of duplicates, Helm uses the first
    if version in entries:
        return entries[version]
    version_range = parse_range(version)
    newest = _find_newest(entries, version_range) if version_range else None
    return entries[newest] if newest else None


def resolve_archive_url(repository: str, url: str, where: str) -> str:
    """Return the URL of an archive. Helm: a relative one is relative to the folder of the index."""
    try:
        resolved = urljoin(f"{repository.rstrip('/')}/", url.strip())
        parts = urlsplit(resolved)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise CorruptSource("the index has an archive that is not at an http or https address", where=where)
    return resolved


def _find_newest(versions: Iterable[str], version_range: VersionRange) -> str | None:
    newest: tuple[SemanticVersion, str] | None = None
    for text in versions:
        version = parse_version(text)
        if version and version_range.matches(version) and (newest is None or version > newest[0]):
            newest = version, text
    return newest[1] if newest else None


def _cut_chart(index: bytes, chart: str) -> bytes | None:
    """Return the part of the index about one chart as an index of its own; None if all of it must be parsed.

    Helm writes the keys of `entries` in block style, with one indentation that nothing else below `entries` has, except
    for the dashes of their lists.
    """
    entries = _ENTRIES.search(index)
    first_key = _FIRST_KEY.match(index, entries.end()) if entries else None
    if entries is None or first_key is None:
        return None
    indentation = first_key[1]
    name = re.escape(chart.encode())
    heading = re.compile(rb"^%b(['\"]?)%b\1:[ \t]*\r?$" % (indentation, name), re.MULTILINE)
    start = heading.search(index, entries.end())
    if start is None:
        return None
    next_key = re.compile(rb"^ {0,%d}[^\s#-]" % len(indentation), re.MULTILINE).search(index, start.end())
    return b"entries:\n" + index[start.start() : next_key.start() if next_key else len(index)]


def _read_entries(index: bytes, where: str) -> Mapping[Any, Any]:
    try:
        document = _read_json(index) if index.lstrip()[:1] == b"{" else read_yaml(index, limits=_INDEX_LIMITS)
    except (ManifestError, LimitError, orjson.JSONDecodeError) as error:
        reason = getattr(error, "message", "invalid JSON")
        raise CorruptSource(f"its index.yaml cannot be read: {reason}", where=where) from error
    entries = document.get("entries") if isinstance(document, Mapping) else None
    if not isinstance(entries, Mapping):
        raise CorruptSource("its index.yaml has no entries, so this is not a Helm repository", where=where)
    return entries


def _read_json(index: bytes) -> Any:
    """Each value follows one of the counted signs, so that their number limits the memory before it is taken."""
    if sum(index.count(sign) for sign in (b",", b":", b"[", b"{")) > MAX_JSON_SIGNS:
        raise LimitError(f"it has more than {MAX_JSON_SIGNS} commas, colons and brackets; split the repository")
    document = orjson.loads(index)
    check_depth(document, _INDEX_LIMITS.depth, "")
    return document


def _read_version(item: Any) -> ChartVersion | None:
    """Return None for an entry without a version or an address; Helm skips such entries, too."""
    if not isinstance(item, Mapping) or not isinstance(item.get("version"), str) or not parse_version(item["version"]):
        return None
    urls, digest = item.get("urls"), item.get("digest")
    url = urls[0] if isinstance(urls, list) and urls and isinstance(urls[0], str) else ""
    match = _SHA256.fullmatch(digest.strip()) if isinstance(digest, str) else None
    return ChartVersion(item["version"], url, match[1].lower() if match else "") if url else None
