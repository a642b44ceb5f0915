"""Interface between the controller and the backends that run notebooks.

In: a job, and which run of it. Out: the state of the run, and finally its outcome. Never: waits for a notebook.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from argosy.features.notebooks.job import Job
from argosy.kube.controller import Context
from argosy.kube.names import ResourceKey

State = Literal["absent", "waiting", "running", "ended", "lost"]
LONGEST: Final = 200


def pod_name(job: str) -> str:
    """Pod name of a job, truncated if it is too long."""
    if len(job) <= LONGEST:
        return f"{job}-validation"
    return f"{job[:LONGEST].rstrip('-.')}-{hashlib.sha256(job.encode()).hexdigest()[:6]}-validation"


@dataclass(frozen=True)
class RunKey:
    """Identifies one run of a job. Attempts count from 1, across re-runs."""

    uid: str
    generation: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.attempt}"


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `category` is one of runner.categories; `retriable`: the notebook did not cause the failure."""

    passed: bool
    message: str
    category: str = ""
    retriable: bool = False
    results: Mapping[str, Any] = field(default_factory=dict)  # results.json
    artefacts: tuple[Mapping[str, str], ...] = ()  # {"path", "digest"} of files that it wrote to volumes


@dataclass(frozen=True)
class Standing:
    """State of a run: `absent` was never started, `waiting` has not begun, `lost` began but its end is unknown."""

    state: State
    cells: tuple[Mapping[str, Any], ...] = ()  # the `cell` events of runner/events.py
    total: int = 0
    pod: str = ""
    revision: str = ""  # the commit of the notebook
    outcome: Outcome | None = None  # when `ended`
    message: str = ""


class Runs(Protocol):
    async def start(self, job: Job, run: RunKey, context: Context) -> None:
        """Idempotent. Raises UserError, which a retry cannot fix, or TransientError."""

    async def look(self, job: Job, run: RunKey, context: Context) -> Standing:
        """Current state of the run; cheap."""

    async def end(self, job: ResourceKey, run: RunKey | None, context: Context) -> None:
        """Cancel the run, or clean up after it, so that no process and no file is left. None: all runs of the job."""
