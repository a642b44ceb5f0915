"""The sync policy of an Application: automation, retries, ignored differences.

In: parts of its spec in Argo CD's format. Out: frozen values. Never: decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects.field_reader import Fields
from argosy.kube.objects.timestamps import backoff_delay

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


class Automated(NamedTuple):
    """Automated syncs."""

    is_on: bool = True  # argo: enabled; True by default
    prune: bool = False
    self_heal: bool = False
    allow_empty: bool = False


class Retry(NamedTuple):
    """How often a failed sync is retried, and with which backoff."""

    limit: int = 0  # negative: no limit
    refresh: bool = False
    duration: float = 5.0  # seconds
    factor: int = 2
    longest: float = 180.0  # seconds

    def delay(self, attempts: int) -> float:
        """Return the seconds to wait after so many attempts."""
        return backoff_delay(self.duration, self.factor, min(attempts, 64), self.longest)


class NamespaceMetadata(NamedTuple):
    """Labels and annotations of the namespace that a sync creates."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class SyncPolicy(NamedTuple):
    """When and how to sync."""

    automated: Automated | None = None
    options: tuple[str, ...] = ()  # argo: syncOptions
    retry: Retry | None = None
    namespace_metadata: NamespaceMetadata | None = None  # argo: managedNamespaceMetadata


class IgnoreDifference(NamedTuple):
    """Fields that are not compared. Group and kind may be patterns with `*`."""

    group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    pointers: tuple[str, ...] = ()
    jq_paths: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()


def policy_of(given: Fields) -> SyncPolicy:
    automated, retry = given.optional("automated"), given.optional("retry")
    metadata = given.optional("managedNamespaceMetadata")
    return SyncPolicy(
        automated=_automated(automated) if automated else None,
        options=given.all_texts("syncOptions"),
        retry=retry_of(retry) if retry else None,
        namespace_metadata=NamespaceMetadata(metadata.texts("labels"), metadata.texts("annotations"))
        if metadata
        else None,
    )


def _automated(given: Fields) -> Automated:
    is_on = given.flag("enabled") if given.values.get("enabled") is not None else True
    return Automated(is_on, given.flag("prune"), given.flag("selfHeal"), given.flag("allowEmpty"))


def retry_of(given: Fields) -> Retry:
    backoff = given.fields("backoff")
    usual = Retry()
    return Retry(
        limit=given.count("limit"),
        refresh=given.flag("refresh"),
        duration=_seconds(backoff, "duration", usual.duration),
        factor=backoff.count("factor") or usual.factor,
        longest=_seconds(backoff, "maxDuration", usual.longest),
    )


def _seconds(given: Fields, name: str, usual: float) -> float:
    text = given.text(name)
    try:
        return seconds_of(text) if text else usual
    except ValueError as error:
        raise ManifestError(f"{name}: {error}", where=given.where) from None


def seconds_of(text: str) -> float:
    """Parse a Go duration: `1h30m`, `5s`; bare digits are seconds. Raises ValueError."""
    if text.isdecimal():
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration; write it as 30s, 5m or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def ignore_difference_of(given: Fields) -> IgnoreDifference:
    return IgnoreDifference(
        group=given.text("group"),
        kind=given.text("kind"),
        name=given.text("name"),
        namespace=given.text("namespace"),
        pointers=given.all_texts("jsonPointers"),
        jq_paths=given.all_texts("jqPathExpressions"),
        managers=given.all_texts("managedFieldsManagers"),
    )
