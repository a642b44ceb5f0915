"""Health gates that argosy adds to waves by annotation: which objects a sync waits for, and how long. Pure.

In: a manifest, messages, times. Out: a gate; the deadline in a message. Never: changes anything for objects without the
annotation.

Deadlines are stored at the end of messages, because Argo CD's operationState has no other field that survives a
restart.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from argosy import annotations as names
from argosy.gitops.application.sync_annotations import get_annotation
from argosy.gitops.application.sync_policy import parse_duration
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp

_TIMESTAMP: Final = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
_DEADLINE_SUFFIX: Final = re.compile(rf" \(to be healthy by {_TIMESTAMP}\)")
_TIME_PRECISION: Final = "milliseconds"  # gates and pauses may be shorter than a second
_PAUSE_SUFFIX: Final = re.compile(rf" \(next wave not before {_TIMESTAMP}\)")


class GateKind(enum.StrEnum):
    """How a sync treats the health of an applied object."""

    WAVE = ""  # argo: awaited between waves, but not in the last one
    BLOCK = "block"  # awaited in the last wave too
    REPORT = "report"  # reported, but not awaited
    IGNORE = "ignore"  # ignored


@dataclass(frozen=True, slots=True)
class HealthGate:
    kind: GateKind = GateKind.WAVE
    timeout_seconds: float = 0.0  # seconds; 0: no timeout

    @property
    def is_blocking(self) -> bool:
        return self.kind is GateKind.BLOCK

    @property
    def is_not_awaited(self) -> bool:
        """True if the health is not awaited and fails nothing."""
        return self.kind in (GateKind.REPORT, GateKind.IGNORE)

    def compute_deadline(self, now: datetime) -> datetime | None:
        return (
            now + timedelta(seconds=self.timeout_seconds) if self.timeout_seconds and not self.is_not_awaited else None
        )


def read_gate(manifest: Manifest) -> HealthGate:
    """Read the gate of a manifest; invalid annotations are ignored."""
    kind_text = get_annotation(manifest, names.GATE) or ""
    timeout_text = get_annotation(manifest, names.GATE_TIMEOUT) or ""
    if not kind_text and not timeout_text:
        return HealthGate()
    try:
        timeout = parse_duration(timeout_text) if timeout_text else 0.0
    except ValueError:
        timeout = 0.0
    return HealthGate(GateKind(kind_text) if kind_text in set(GateKind) else GateKind.WAVE, timeout)


def append_deadline(message: str, deadline: datetime | None) -> str:
    return f"{message} (to be healthy by {format_timestamp(deadline, _TIME_PRECISION)})" if deadline else message


def read_deadline(message: str) -> datetime | None:
    return _find_timestamp(_DEADLINE_SUFFIX, message)


def strip_deadline(message: str) -> str:
    return _DEADLINE_SUFFIX.sub("", message)


def append_pause(message: str, until: datetime | None) -> str:
    return f"{message} (next wave not before {format_timestamp(until, _TIME_PRECISION)})" if until else message


def read_pause(message: str) -> datetime | None:
    return _find_timestamp(_PAUSE_SUFFIX, message)


def _find_timestamp(pattern: re.Pattern[str], message: str) -> datetime | None:
    match = pattern.search(message)
    return datetime.fromisoformat(match[1]) if match else None
