"""Caches the results of comparisons. The caller owns the cache.

In: the digest of a desired manifest, the uid and version of the live one, the diff options. Out: the cached result.
Never: exceeds its size limit; caches a live manifest without a version.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import orjson

from argosy.gitops.diff.diff_options import CompareRules
from argosy.kube.objects import Manifest


class Verdict(NamedTuple):
    """The result of comparing a pair; the two sides are set only if they differ."""

    differs: bool
    predicted: Manifest | None = None
    compared: Manifest | None = None


class Fingerprint(NamedTuple):
    uid: str
    version: str
    desired: bytes
    predicted: bytes
    rules: int


class Memory:
    """One cached result per live object."""

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._rules: dict[CompareRules, int] = {}
        self._said: dict[str, tuple[Fingerprint, Verdict]] = {}

    def __len__(self) -> int:
        return len(self._said)

    def number_of(self, rules: CompareRules) -> int:
        """Return a small number that stands for these options, for fast comparison."""
        if len(self._rules) > self._most:
            self._rules.clear()
            self._said.clear()
        return self._rules.setdefault(rules, len(self._rules))

    def recall(self, fingerprint: Fingerprint) -> Verdict | None:
        known = self._said.get(fingerprint.uid)
        return known[1] if known is not None and known[0] == fingerprint else None

    def keep(self, fingerprint: Fingerprint, verdict: Verdict) -> None:
        self._said.pop(fingerprint.uid, None)
        self._said[fingerprint.uid] = fingerprint, verdict
        if len(self._said) > self._most:
            del self._said[next(iter(self._said))]


def fingerprint(desired: Manifest, live: Manifest, predicted: Manifest | None, number: int) -> Fingerprint | None:
    metadata = live.get("metadata")
    if not isinstance(metadata, dict):
        return None
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if not isinstance(uid, str) or not isinstance(version, str) or not uid or not version:
        return None
    return Fingerprint(uid, version, _digest(desired), b"" if predicted is None else _digest(predicted), number)


def _digest(manifest: Manifest) -> bytes:
    return hashlib.blake2b(orjson.dumps(manifest), digest_size=16).digest()
