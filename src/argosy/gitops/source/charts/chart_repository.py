"""One Helm repository: finds versions in its index, downloads charts and keeps them.

In: a chart, a version or a range. Out: Checkout(tree, version), or a SourceError. Never: downloads a chart again that
is in the cache, unless asked to; uses an archive whose digest differs from the index.
"""

from __future__ import annotations

import asyncio
import copy
import difflib
import hashlib
import re
import time
from collections.abc import Callable
from typing import Final

from argosy.errors import CorruptSource, SourceError, SourceRefused, SourceUnreachable, UnknownRef
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.charts.chart_archive import ChartTree, check_archive, is_intact, open_chart
from argosy.gitops.source.charts.chart_cache import ChartCache
from argosy.gitops.source.charts.chart_host import ChartHost
from argosy.gitops.source.charts.chart_index import (
    ChartVersion,
    find_chart_version,
    list_chart_versions,
    list_charts,
    resolve_archive_url,
    resolve_version,
)
from argosy.gitops.source.version_ranges import parse_range, parse_version

MAX_ARCHIVE_BYTES: Final = 32 << 20
MAX_CACHED_CHARTS: Final = 200  # charts whose versions are kept in memory
_CHART_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
MAX_CHART_NAME_LENGTH: Final = 250  # Helm's own limit
MAX_INDEX_READS: Final = 3  # then other processes replace it faster than it is read


class ChartRepository:
    def __init__(
        self, host: ChartHost, cache: ChartCache, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`name` is that of the repository's files in the cache: one per URL and credential."""
        self.host, self._cache, self._name, self._clock = host, cache, name, clock
        self._index_lock, self._download_lock = asyncio.Lock(), asyncio.Lock()
        self._indexed_at: float | None = None
        self._index = b""  # hash of the index, to keep what was parsed of it
        self._last_failure: tuple[float, SourceError] | None = None
        self._versions: dict[str, list[ChartVersion]] = {}

    async def checkout(
        self,
        chart: str,
        ref: str,
        *,
        max_age: float = 0.0,
        passes_credentials: bool = False,
        ignores_cache: bool = False,
    ) -> Checkout:
        """Return the files of a chart. `max_age`: seconds that the index may be old.

        A pinned version that is in the cache needs no index.
        """
        if not _CHART_NAME.fullmatch(chart) or len(chart) > MAX_CHART_NAME_LENGTH:
            raise SourceRefused(f"invalid chart name {chart[:100]!r}; correct it", where=self.host.display_url)
        if not ref:
            message = "targetRevision is required if the manifest source is a helm chart"
            raise UnknownRef(message, where=self.host.display_url)
        version = ref if parse_version(ref) else await self._resolve(chart, ref, max_age)
        tree = None if ignores_cache else await asyncio.to_thread(self._find_cached, chart, version)
        if tree is None:
            async with self._download_lock:
                tree = None if ignores_cache else await asyncio.to_thread(self._find_cached, chart, version)
                if tree is None:
                    tree = await self._download(chart, version, max_age, passes_credentials=passes_credentials)
        return Checkout(tree, version)

    async def list_versions(self, chart: str, *, max_age: float = 0.0) -> list[ChartVersion]:
        await self._refresh_index(max_age)
        if (versions := self._versions.get(chart)) is not None:
            return versions
        digest, index = await self._load_index()
        versions = await asyncio.to_thread(list_chart_versions, index, chart, self.host.display_url)
        if digest == self._index:  # a newer index may have arrived meanwhile: the next caller reads it
            if len(self._versions) >= MAX_CACHED_CHARTS:
                del self._versions[next(iter(self._versions))]
            self._versions[chart] = versions
        return versions

    async def list_charts(self, *, max_age: float = 0.0) -> dict[str, list[str]]:
        """Return the versions of all charts by name."""
        await self._refresh_index(max_age)
        _, index = await self._load_index()
        return await asyncio.to_thread(list_charts, index, self.host.display_url)

    async def _resolve(self, chart: str, ref: str, max_age: float) -> str:
        versions = [version.version for version in await self.list_versions(chart, max_age=max_age)]
        resolved = resolve_version(ref, versions)
        if resolved is None:
            raise self._build_unknown_version_error(chart, ref, versions)
        return resolved

    def _build_unknown_version_error(self, chart: str, ref: str, versions: list[str]) -> UnknownRef:
        where = self.host.display_url
        if parse_range(ref) and not parse_version(ref):
            return UnknownRef(
                f"none of the {len(versions)} versions of chart {chart} is in the range {ref[:200]!r}; publish one, or "
                "widen the range (pre-releases match only if the range ends in -0)",
                where=where,
            )
        suggestions = difflib.get_close_matches(ref[:200], versions[:5000], n=3)
        hint = f"did you mean {' or '.join(suggestions)}?" if suggestions else "publish it, or use another version"
        return UnknownRef(f"chart {chart} has no version {ref[:200]!r}; {hint}", where=where)

    # -- index -----------------------------------------------------------------------------------------------------

    async def _refresh_index(self, max_age: float) -> None:
        """Download the index unless it is recent enough. Concurrent callers share one request, and its failure."""
        called_at = self._clock()
        async with self._index_lock:
            if self._indexed_at is not None and self._indexed_at >= called_at - max_age:
                return
            if self._last_failure and self._last_failure[0] >= called_at:
                raise copy.copy(self._last_failure[1])  # each caller has its own traceback
            requested_at = self._clock()
            try:
                index = await self.host.fetch_index()
                digest = hashlib.sha256(index).digest()
                if digest != self._index or self._cache.find(self._index_name) is None:
                    await asyncio.to_thread(self._cache.store, self._index_name, index)
                    self._index = digest
                    self._versions.clear()
            except SourceError as error:
                self._last_failure = (requested_at, error)
                raise
            self._indexed_at = requested_at

    @property
    def _index_name(self) -> str:
        return f"{self._name}.index"

    async def _load_index(self) -> tuple[bytes, bytes]:
        """Return the hash of the index and the index, which is the one of the last download.

        Another process, or a full disk, may have replaced, damaged or removed the file: then it is downloaded again.
        """
        for _ in range(MAX_INDEX_READS):
            async with self._index_lock:  # a download writes the file and its hash one after the other
                index = await asyncio.to_thread(self._read_index_file)
                digest = hashlib.sha256(index).digest()
                if digest == self._index:
                    return digest, index
                self._cache.remove(self._index_name)
                self._indexed_at = None
            await self._refresh_index(0.0)
        raise SourceUnreachable("its index changes all the time; argosy will retry", where=self.host.display_url)

    def _read_index_file(self) -> bytes:
        path = self._cache.find(self._index_name)
        try:
            return b"" if path is None else path.read_bytes()
        except OSError:
            return b""

    # -- archives --------------------------------------------------------------------------------------------------

    def _archive_name(self, chart: str, version: str) -> str:
        return f"{self._name}-{hashlib.sha256(repr((chart, version)).encode()).hexdigest()[:32]}.tgz"

    def _find_cached(self, chart: str, version: str) -> ChartTree | None:
        path = self._cache.find(self._archive_name(chart, version))
        try:
            tree = open_chart(path, chart) if path is not None else None
        except OSError:
            return None
        return tree if tree is not None and is_intact(tree) else None  # a damaged one is fetched again

    async def _download(self, chart: str, version: str, max_age: float, *, passes_credentials: bool) -> ChartTree:
        where = self.host.display_url
        versions = await self.list_versions(chart, max_age=max_age)
        entry = find_chart_version(versions, version)
        if entry is None and max_age > 0:
            versions = await self.list_versions(chart)
            entry = find_chart_version(versions, version)
        if entry is None:
            raise self._build_unknown_version_error(chart, version, [item.version for item in versions])
        url = resolve_archive_url(str(self.host.url), entry.url, where)
        archive = await self.host.fetch(url, MAX_ARCHIVE_BYTES, passes_credentials=passes_credentials)
        if entry.digest and hashlib.sha256(archive).hexdigest() != entry.digest:
            message = f"the archive of chart {chart} {version} does not have the digest that the index names"
            raise CorruptSource(f"{message}; find out why, or publish it again", where=where)
        try:
            await asyncio.to_thread(check_archive, archive, chart)
        except SourceError as error:
            error.where = where
            raise
        path = await asyncio.to_thread(self._cache.store, self._archive_name(chart, version), archive)
        return open_chart(path, chart)
