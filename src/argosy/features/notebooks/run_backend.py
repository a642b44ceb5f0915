"""The seam between the controller and the place where a notebook runs.

In: a job and which run of it. Out: where the run stands, and in the end its outcome. Never: waits for a notebook.
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
    """A Pod of any job has one; that of a job with a very long name is not all of it."""
    if len(job) <= LONGEST:
        return f"{job}-validation"
    return f"{job[:LONGEST].rstrip('-.')}-{hashlib.sha256(job.encode()).hexdigest()[:6]}-validation"


@dataclass(frozen=True)
class RunKey:
    """One run of a job. Attempts count from 1, over re-runs too."""

    uid: str
    generation: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.generation}-{self.attempt}"


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `category` is one of runner.categories; what is `retriable` was nobody's notebook's fault."""

    passed: bool
    message: str
    category: str = ""
    retriable: bool = False
    results: Mapping[str, Any] = field(default_factory=dict)  # results.json
    artefacts: tuple[Mapping[str, str], ...] = ()  # {"path", "digest"} of files that it left in volumes


@dataclass(frozen=True)
class Standing:
    """Where a run is: `absent` was never started, `waiting` has not begun, `lost` began and nobody knows its end."""

    state: State
    cells: tuple[Mapping[str, Any], ...] = ()  # the lines `cell` of runner/events.py
    total: int = 0
    pod: str = ""
    revision: str = ""  # the commit that the notebook is of
    outcome: Outcome | None = None  # when `ended`
    message: str = ""


class Runs(Protocol):
    async def start(self, job: Job, run: RunKey, context: Context) -> None:
        """Idempotent. Raises UserError, which another try cannot help, or TransientError."""

    async def look(self, job: Job, run: RunKey, context: Context) -> Standing:
        """Where it stands now; cheap."""

    async def end(self, job: ResourceKey, run: RunKey | None, context: Context) -> None:
        """Cancel it, or clean up after it: no process and no file is left. None: all runs of the job."""
