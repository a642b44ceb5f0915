"""Finds the gate that a running sync waits at: objects, wave, since when, and deadline.

In: an Application's live state. Out: a wait, or None. Never: asks a cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApplication, LiveView, render_duration
from argosy.gitops.application.operations import OperationPhase, ResourceResult
from argosy.gitops.status.status_json_conversions import omit_empty
from argosy.gitops.sync.health_gate_annotations import read_deadline, strip_deadline
from argosy.gitops.sync.retry import is_waiting_for_retry

WAITING_PREFIX: Final = "waiting for "  # prefix of the message of a delayed operation
_MAX_NAMED_OBJECTS: Final = 3
_BLOCKED_BY_NOTEBOOK: Final = re.compile(
    r"waiting for NotebookValidationJob (?P<job>\S+), which blocks wave (?P<wave>-?\d+)"
)


@dataclass(frozen=True)
class WaveWait:
    app: str
    seconds: float  # since the operation started
    wave: int | None = None
    phase: str = ""
    objects: tuple[str, ...] = ()  # `Job/migrate (hook): message`
    deadline: str = ""
    message: str = ""

    @property
    def text(self) -> str:
        object_text = (
            ", ".join(self.objects[:_MAX_NAMED_OBJECTS]) or self.message.removeprefix(WAITING_PREFIX) or "its turn"
        )
        more = f" and {len(self.objects) - _MAX_NAMED_OBJECTS} more" if len(self.objects) > _MAX_NAMED_OBJECTS else ""
        wave_text = f"wave {self.wave}" if self.wave is not None else "its first wave"
        phase_text = f" of {self.phase}" if self.phase and self.phase != "Sync" else ""
        deadline_text = f"; to be healthy by {self.deadline}" if self.deadline else ""
        return (
            f"{wave_text}{phase_text} is blocked for {render_duration(self.seconds)}: waiting for "
            f"{object_text}{more}{deadline_text}"
        )

    def to_wire(self) -> dict[str, Any]:
        return {
            "application": self.app,
            "seconds": round(self.seconds),
            **({} if self.wave is None else {"wave": self.wave}),
            **omit_empty(phase=self.phase, objects=list(self.objects), deadline=self.deadline, message=self.message),
        }


def find_wave_wait(app: LiveApplication, view: LiveView) -> WaveWait | None:
    """Return None if no sync is running, or if it waits for its next retry."""
    state = app.app.state
    if state is None or state.phase.is_over or is_waiting_for_retry(state):
        return None
    seconds = view.seconds_since(state.started) or 0.0
    waves = {row.key: row.wave for row in app.resources}
    running = [
        (result, waves.get(key, 0))
        for key, result in state.list_results(waves)
        if result.hook_phase is OperationPhase.RUNNING
    ]
    blocked = _BLOCKED_BY_NOTEBOOK.search(state.message)
    if blocked:
        objects = (f"NotebookValidationJob/{blocked['job'].rpartition('/')[2]}",)
        return WaveWait(app.name, seconds, int(blocked["wave"]), "Sync", objects, message=state.message)
    if not running:
        return WaveWait(app.name, seconds, message=state.message)
    phase = max(running, key=lambda row: row[1])[0].phase
    wave = max(wave for result, wave in running if result.phase is phase)
    phase_results = [result for result, _ in running if result.phase is phase]
    deadlines = [deadline for result in phase_results if (deadline := read_deadline(result.message))]
    until = min(deadlines).isoformat() if deadlines else ""
    return WaveWait(
        app.name, seconds, wave, phase.value, tuple(map(_render_result, phase_results)), until, state.message
    )


def _render_result(result: ResourceResult) -> str:
    hook = " (hook)" if result.hook else ""
    message = strip_deadline(result.message).strip()
    return f"{result.key.kind}/{result.key.name}{hook}{f': {message}' if message else ''}"
