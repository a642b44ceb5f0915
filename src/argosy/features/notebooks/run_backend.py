"""Interface between the controller and the backends that run notebooks.

In: a job, and which run of it. Out: the state of the run, and finally its outcome. Never: waits for a notebook.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.kube.controller import ControllerContext
from argosy.kube.resource_key import ResourceKey

RunPhase = Literal["absent", "waiting", "running", "ended", "lost"]
MAX_JOB_NAME_CHARACTERS: Final = 200


def build_pod_name(job_name: str) -> str:
    """Pod name of a job, truncated if it is too long."""
    if len(job_name) <= MAX_JOB_NAME_CHARACTERS:
        return f"{job_name}-validation"
    digest = hashlib.sha256(job_name.encode()).hexdigest()[:6]
    return f"{job_name[:MAX_JOB_NAME_CHARACTERS].rstrip('-.')}-{digest}-validation"


@dataclass(frozen=True)
class RunKey:
    """Identifies one run of a job. Attempts count from 1, across re-runs."""

    uid: str
    generation: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.attempt}"


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. `category` is one of runner.categories; `retriable`: the notebook did not cause the failure."""

    passed: bool
    message: str
    category: str = ""
    retriable: bool = False
    results: Mapping[str, Any] = field(default_factory=dict)  # results.json
    artefacts: tuple[Mapping[str, str], ...] = ()  # {"path", "digest"} of files that it wrote to volumes


@dataclass(frozen=True)
class NotebookRunState:
    """State of a run: `absent` was never started, `waiting` has not begun, `lost` began but its end is unknown."""

    state: RunPhase
    cells: tuple[Mapping[str, Any], ...] = ()  # the `cell` events of runner/event_stream.py
    cell_count: int = 0
    pod: str = ""
    revision: str = ""  # the commit of the notebook
    outcome: RunOutcome | None = None  # when `ended`
    message: str = ""


class RunBackend(Protocol):
    async def start(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> None:
        """Idempotent. Raises UserError, which a retry cannot fix, or TransientError."""

    async def observe(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> NotebookRunState:
        """Current state of the run; cheap."""

    async def stop(self, job: ResourceKey, run: RunKey | None, context: ControllerContext) -> None:
        """Cancel the run, or clean up after it, so that no process and no file is left. None: all runs of the job."""
