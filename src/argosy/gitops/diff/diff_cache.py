"""Caches the results of comparisons. The caller owns the cache.

In: the digest of a desired manifest, the uid and version of the live one, the diff options. Out: the cached result.
Never: exceeds its size limit; caches a live manifest without a version.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import orjson

from argosy.gitops.diff.diff_options import DiffOptions
from argosy.kube.objects import Manifest


class PairResult(NamedTuple):
    """The result of comparing a pair; the two sides are set only if they differ."""

    differs: bool
    predicted: Manifest | None = None
    compared: Manifest | None = None


class DiffCacheKey(NamedTuple):
    uid: str
    version: str
    desired: bytes
    predicted: bytes
    options_id: int


class DiffCache:
    """One cached result per live object."""

    def __init__(self, max_entries: int = 50_000) -> None:
        self._max_entries = max_entries
        self._options_numbers: dict[DiffOptions, int] = {}
        self._results: dict[str, tuple[DiffCacheKey, PairResult]] = {}

    def __len__(self) -> int:
        return len(self._results)

    def options_id(self, options: DiffOptions) -> int:
        """Return a small number that stands for these options, for fast comparison."""
        if len(self._options_numbers) > self._max_entries:
            self._options_numbers.clear()
            self._results.clear()
        return self._options_numbers.setdefault(options, len(self._options_numbers))

    def find(self, key: DiffCacheKey) -> PairResult | None:
        entry = self._results.get(key.uid)
        return entry[1] if entry is not None and entry[0] == key else None

    def store(self, key: DiffCacheKey, result: PairResult) -> None:
        self._results.pop(key.uid, None)
        self._results[key.uid] = key, result
        if len(self._results) > self._max_entries:
            del self._results[next(iter(self._results))]


def build_cache_key(
    desired: Manifest, live: Manifest, predicted: Manifest | None, options_id: int
) -> DiffCacheKey | None:
    metadata = live.get("metadata")
    if not isinstance(metadata, dict):
        return None
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if not isinstance(uid, str) or not isinstance(version, str) or not uid or not version:
        return None
    return DiffCacheKey(uid, version, _digest(desired), b"" if predicted is None else _digest(predicted), options_id)


def _digest(manifest: Manifest) -> bytes:
    return hashlib.blake2b(orjson.dumps(manifest), digest_size=16).digest()
