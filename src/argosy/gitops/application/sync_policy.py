"""The sync policy of an Application: automation, retries, ignored differences.

In: parts of its spec in Argo CD's format. Out: frozen values. Never: decides anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.errors import ManifestError
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.objects.timestamps_and_delays import backoff_delay

_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


class AutomatedSync(NamedTuple):
    """Automated syncs."""

    is_on: bool = True  # argo: enabled; True by default
    prune: bool = False
    self_heal: bool = False
    allow_empty: bool = False


@dataclass(frozen=True, slots=True)
class RetryStrategy:
    """How often a failed sync is retried, and with which backoff."""

    limit: int = 0  # negative: no limit
    refresh: bool = False
    duration: float = 5.0  # seconds
    factor: int = 2
    longest: float = 180.0  # seconds
    # fields of `backoff` as they were written
    written_backoff: tuple[tuple[str, Any], ...] = field(default=(), compare=False)

    def delay_seconds(self, attempts: int) -> float:
        """Return the seconds to wait after so many attempts."""
        return backoff_delay(self.duration, self.factor, min(attempts, 64), self.longest)


class NamespaceMetadata(NamedTuple):
    """Labels and annotations of the namespace that a sync creates."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class SyncPolicy(NamedTuple):
    """When and how to sync."""

    automated: AutomatedSync | None = None
    options: tuple[str, ...] = ()  # argo: syncOptions
    retry: RetryStrategy | None = None
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


def read_policy(fields: FieldReader) -> SyncPolicy:
    automated, retry = fields.find_map("automated"), fields.find_map("retry")
    metadata = fields.find_map("managedNamespaceMetadata")
    return SyncPolicy(
        automated=_read_automated(automated) if automated else None,
        options=fields.read_text_list("syncOptions"),
        retry=read_retry(retry) if retry else None,
        namespace_metadata=NamespaceMetadata(metadata.read_text_map("labels"), metadata.read_text_map("annotations"))
        if metadata
        else None,
    )


def _read_automated(fields: FieldReader) -> AutomatedSync:
    is_on = fields.read_bool("enabled") if fields.values.get("enabled") is not None else True
    return AutomatedSync(is_on, fields.read_bool("prune"), fields.read_bool("selfHeal"), fields.read_bool("allowEmpty"))


def read_retry(fields: FieldReader) -> RetryStrategy:
    backoff = fields.read_map("backoff")
    defaults = RetryStrategy()
    return RetryStrategy(
        limit=fields.read_int("limit"),
        refresh=fields.read_bool("refresh"),
        duration=_read_seconds(backoff, "duration", defaults.duration),
        factor=backoff.read_int("factor") or defaults.factor,
        longest=_read_seconds(backoff, "maxDuration", defaults.longest),
        written_backoff=tuple(
            (name, value) for name in ("duration", "factor", "maxDuration") if (value := backoff.values.get(name))
        ),
    )


def _read_seconds(fields: FieldReader, name: str, default: float) -> float:
    text = fields.read_text(name)
    try:
        return parse_duration(text) if text else default
    except ValueError as error:
        raise ManifestError(f"{name}: {error}", where=fields.where) from None


def parse_duration(text: str) -> float:
    """Parse a Go duration: `1h30m`, `5s`; bare digits are seconds. Raises ValueError."""
    if text.isdecimal():
        return float(text)
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration; write it as 30s, 5m or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def read_ignore_difference(fields: FieldReader) -> IgnoreDifference:
    return IgnoreDifference(
        group=fields.read_text("group"),
        kind=fields.read_text("kind"),
        name=fields.read_text("name"),
        namespace=fields.read_text("namespace"),
        pointers=fields.read_text_list("jsonPointers"),
        jq_paths=fields.read_text_list("jqPathExpressions"),
        managers=fields.read_text_list("managedFieldsManagers"),
    )
