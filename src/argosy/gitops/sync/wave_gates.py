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
from argosy.gitops.application.hooks import annotation_text
from argosy.gitops.application.sync_policy import seconds_of
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written

_TIME: Final = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
_GATE: Final = re.compile(rf" \(to be healthy by {_TIME}\)")
_PARTS: Final = "milliseconds"  # gates and pauses may be shorter than a second
_PAUSE: Final = re.compile(rf" \(next wave not before {_TIME}\)")


class GateKind(enum.StrEnum):
    """How a sync treats the health of an applied object."""

    WAVE = ""  # argo: awaited between waves, but not in the last one
    BLOCK = "block"  # awaited in the last wave too
    REPORT = "report"  # reported, but not awaited
    IGNORE = "ignore"  # ignored


@dataclass(frozen=True, slots=True)
class Gate:
    kind: GateKind = GateKind.WAVE
    timeout: float = 0.0  # seconds; 0: no timeout

    @property
    def blocks(self) -> bool:
        return self.kind is GateKind.BLOCK

    @property
    def is_free(self) -> bool:
        """True if the health is not awaited and fails nothing."""
        return self.kind in (GateKind.REPORT, GateKind.IGNORE)

    def deadline(self, now: datetime) -> datetime | None:
        return now + timedelta(seconds=self.timeout) if self.timeout and not self.is_free else None


def gate_of(manifest: Manifest) -> Gate:
    """Read the gate of a manifest; invalid annotations are ignored."""
    word = annotation_text(manifest, names.GATE) or ""
    text = annotation_text(manifest, names.GATE_TIMEOUT) or ""
    if not word and not text:
        return Gate()
    try:
        timeout = seconds_of(text) if text else 0.0
    except ValueError:
        timeout = 0.0
    return Gate(GateKind(word) if word in set(GateKind) else GateKind.WAVE, timeout)


def with_deadline(message: str, deadline: datetime | None) -> str:
    return f"{message} (to be healthy by {written(deadline, _PARTS)})" if deadline else message


def deadline_of(message: str) -> datetime | None:
    return _found(_GATE, message)


def without_deadline(message: str) -> str:
    return _GATE.sub("", message)


def with_pause(message: str, until: datetime | None) -> str:
    return f"{message} (next wave not before {written(until, _PARTS)})" if until else message


def pause_of(message: str) -> datetime | None:
    return _found(_PAUSE, message)


def _found(pattern: re.Pattern[str], message: str) -> datetime | None:
    match = pattern.search(message)
    return datetime.fromisoformat(match[1]) if match else None
