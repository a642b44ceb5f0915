"""Finds the gate that a running sync waits at: objects, wave, since when, and deadline.

In: an Application's live state. Out: a wait, or None. Never: asks a cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApp, LiveView, span
from argosy.gitops.application.operations import Progress, Result
from argosy.gitops.status.wire_format import given
from argosy.gitops.sync.retry import is_resting
from argosy.gitops.sync.wave_gates import deadline_of, without_deadline

WAITING: Final = "waiting for "  # prefix of the message of a delayed operation
_MOST: Final = 3
_BLOCK: Final = re.compile(r"waiting for NotebookValidationJob (?P<job>\S+), which blocks wave (?P<wave>-?\d+)")


@dataclass(frozen=True)
class Wait:
    app: str
    seconds: float  # since the operation started
    wave: int | None = None
    phase: str = ""
    objects: tuple[str, ...] = ()  # `Job/migrate (hook): message`
    deadline: str = ""
    message: str = ""

    @property
    def text(self) -> str:
        what = ", ".join(self.objects[:_MOST]) or self.message.removeprefix(WAITING) or "its turn"
        more = f" and {len(self.objects) - _MOST} more" if len(self.objects) > _MOST else ""
        where = f"wave {self.wave}" if self.wave is not None else "its first wave"
        when = f" of {self.phase}" if self.phase and self.phase != "Sync" else ""
        until = f"; to be healthy by {self.deadline}" if self.deadline else ""
        return f"{where}{when} is blocked for {span(self.seconds)}: waiting for {what}{more}{until}"

    def document(self) -> dict[str, Any]:
        return {
            "application": self.app,
            "seconds": round(self.seconds),
            **({} if self.wave is None else {"wave": self.wave}),
            **given(phase=self.phase, objects=list(self.objects), deadline=self.deadline, message=self.message),
        }


def wait_of(app: LiveApp, view: LiveView) -> Wait | None:
    """Return None if no sync is running, or if it waits for its next retry."""
    state = app.app.state
    if state is None or state.progress.is_over or is_resting(state):
        return None
    seconds = view.seconds_since(state.started) or 0.0
    waves = {row.key: row.wave for row in app.rows}
    running = [each for each in state.results if each.progress is Progress.RUNNING]
    blocked = _BLOCK.search(state.message)
    if blocked:
        objects = (f"NotebookValidationJob/{blocked['job'].rpartition('/')[2]}",)
        return Wait(app.name, seconds, int(blocked["wave"]), "Sync", objects, message=state.message)
    if not running:
        return Wait(app.name, seconds, message=state.message)
    phase = max(running, key=lambda each: waves.get(each.key, 0)).phase
    here = [each for each in running if each.phase is phase]
    wave = max(waves.get(each.key, 0) for each in here)
    deadlines = [found for each in here if (found := deadline_of(each.message))]
    until = min(deadlines).isoformat() if deadlines else ""
    return Wait(app.name, seconds, wave, phase.value, tuple(map(_told, here)), until, state.message)


def _told(result: Result) -> str:
    hook = " (hook)" if result.hook else ""
    said = without_deadline(result.message).strip()
    return f"{result.key.kind}/{result.key.name}{hook}{f': {said}' if said else ''}"
