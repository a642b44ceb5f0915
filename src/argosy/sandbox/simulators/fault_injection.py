"""Reads the annotations that control how a Pod is simulated: faults, delays, run time.

In: annotations of the Pod, its template and its owners, nearest first. Out: SimulationSettings. Never: guesses: an
invalid value raises UserError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from argosy.annotations import FAIL, FAIL_TIMES, READY_AFTER, RUN, RUN_FOR, STOP_AFTER
from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.timestamps import seconds_of

NAMES: Final = (FAIL, FAIL_TIMES, READY_AFTER, RUN, RUN_FOR, STOP_AFTER)
PROCESS: Final = "process"
SLOW_SECONDS: Final = 30.0
EVICTED_AFTER: Final = 5.0


class Fault(StrEnum):
    IMAGE_PULL = "ImagePull"
    CRASH_LOOP = "CrashLoop"
    NOT_READY = "NotReady"
    OOM_KILLED = "OOMKilled"
    UNSCHEDULABLE = "Unschedulable"
    STORAGE = "Storage"
    SLOW = "Slow"
    EVICTED = "Evicted"
    EXIT = "Exit"


ENDING: Final = (Fault.CRASH_LOOP, Fault.OOM_KILLED, Fault.EXIT)


@dataclass(frozen=True)
class Wishes:
    fail: Fault | None = None
    fail_times: int | None = None  # None: every Pod fails
    ready_after: float = 0.0
    run_for: float = 0.0
    stop_after: float = 0.0
    is_process: bool = False


def asked(manifest: Manifest) -> dict[str, str]:
    """Return the simulation annotations of a manifest."""
    annotations = manifest["metadata"].get("annotations") or {}
    return {name: annotations[name] for name in NAMES if name in annotations}


def read_wishes(annotations: Iterable[Mapping[str, str]]) -> Wishes:
    """Merge annotations and parse them; the first value of an annotation wins. Raises UserError."""
    found: dict[str, str] = {}
    for each in annotations:
        found = {**each, **found}
    if not found:
        return NONE
    fail = _fault(found[FAIL]) if found.get(FAIL) else None
    slow = SLOW_SECONDS if fail is Fault.SLOW else 0.0
    return Wishes(
        fail,
        _count(found[FAIL_TIMES]) if FAIL_TIMES in found else None,
        _seconds(found, READY_AFTER, slow),
        _seconds(found, RUN_FOR, EVICTED_AFTER if fail is Fault.EVICTED else slow),
        _seconds(found, STOP_AFTER, 0.0),
        _is_process(found.get(RUN, "")),
    )


NONE: Final = Wishes()


def _fault(text: str) -> Fault:
    try:
        return Fault(text)
    except ValueError:
        known = ", ".join(Fault)
        raise UserError(f"unknown fault {text}; choose among: {known}", where=FAIL) from None


def _is_process(text: str) -> bool:
    if text not in ("", PROCESS):
        raise UserError(f"invalid value {text!r}; write {PROCESS}, or remove the annotation", where=RUN)
    return text == PROCESS


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise UserError(f"invalid number {text!r}; write for example 2", where=FAIL_TIMES)
    return int(text)


def _seconds(found: Mapping[str, str], name: str, default: float) -> float:
    return seconds_of(found[name], name) if name in found else default
