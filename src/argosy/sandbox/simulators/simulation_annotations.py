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
from argosy.sandbox.simulators.timestamps_and_durations import parse_duration

SIMULATION_ANNOTATIONS: Final = (FAIL, FAIL_TIMES, READY_AFTER, RUN, RUN_FOR, STOP_AFTER)
RUN_AS_PROCESS: Final = "process"
SLOW_SECONDS: Final = 30.0
EVICTION_DELAY_SECONDS: Final = 5.0


class InjectedFault(StrEnum):
    IMAGE_PULL = "ImagePull"
    CRASH_LOOP = "CrashLoop"
    NOT_READY = "NotReady"
    OOM_KILLED = "OOMKilled"
    UNSCHEDULABLE = "Unschedulable"
    STORAGE = "Storage"
    SLOW = "Slow"
    EVICTED = "Evicted"
    EXIT = "Exit"


FAULTS_WITH_EXIT: Final = (InjectedFault.CRASH_LOOP, InjectedFault.OOM_KILLED, InjectedFault.EXIT)


@dataclass(frozen=True)
class SimulationSettings:
    fault: InjectedFault | None = None
    fail_times: int | None = None  # None: every Pod fails
    ready_after: float = 0.0
    run_for: float = 0.0
    stop_after: float = 0.0
    runs_as_process: bool = False


def read_simulation_annotations(manifest: Manifest) -> dict[str, str]:
    """Return the simulation annotations of a manifest."""
    annotations = manifest["metadata"].get("annotations") or {}
    return {name: annotations[name] for name in SIMULATION_ANNOTATIONS if name in annotations}


def read_simulation_settings(annotations: Iterable[Mapping[str, str]]) -> SimulationSettings:
    """Merge annotations and parse them; the first value of an annotation wins. Raises UserError."""
    merged: dict[str, str] = {}
    for annotation_map in annotations:
        merged = {**annotation_map, **merged}
    if not merged:
        return DEFAULT_SETTINGS
    fault = _parse_fault(merged[FAIL]) if merged.get(FAIL) else None
    slow_seconds = SLOW_SECONDS if fault is InjectedFault.SLOW else 0.0
    return SimulationSettings(
        fault,
        _parse_count(merged[FAIL_TIMES]) if FAIL_TIMES in merged else None,
        _parse_seconds(merged, READY_AFTER, slow_seconds),
        _parse_seconds(merged, RUN_FOR, EVICTION_DELAY_SECONDS if fault is InjectedFault.EVICTED else slow_seconds),
        _parse_seconds(merged, STOP_AFTER, 0.0),
        _parse_run_mode(merged.get(RUN, "")),
    )


DEFAULT_SETTINGS: Final = SimulationSettings()


def _parse_fault(text: str) -> InjectedFault:
    try:
        return InjectedFault(text)
    except ValueError:
        fault_names = ", ".join(InjectedFault)
        raise UserError(f"unknown fault {text}; choose among: {fault_names}", where=FAIL) from None


def _parse_run_mode(text: str) -> bool:
    if text not in ("", RUN_AS_PROCESS):
        raise UserError(f"invalid value {text!r}; write {RUN_AS_PROCESS}, or remove the annotation", where=RUN)
    return text == RUN_AS_PROCESS


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise UserError(f"invalid number {text!r}; write for example 2", where=FAIL_TIMES)
    return int(text)


def _parse_seconds(annotations: Mapping[str, str], name: str, default: float) -> float:
    return parse_duration(annotations[name], name) if name in annotations else default
