"""Controller of NotebookValidationJobs.

In: the key of a job. Out: one stored step of its state machine, with Events and metrics. Never: waits for a notebook, a
build or a model; acts on a result before that result is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from argosy.errors import ArgosyError, Conflict
from argosy.features.notebooks import deadlines, events, metric_updates, state_machine
from argosy.features.notebooks.job import KIND, Job, read_job
from argosy.features.notebooks.metrics import Metrics
from argosy.features.notebooks.problems import problems
from argosy.features.notebooks.run_backend import RunKey, Runs
from argosy.features.notebooks.secret_values import secrets_of, without
from argosy.features.notebooks.state_machine import BuildStanding, Step
from argosy.features.notebooks.statuses import BUILDING, BUILT, INITIALIZING, TERMINAL, Status
from argosy.kube.controller import Context, Requeue, Watch, itself
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)
MANAGER: Final = "notebooks"
RECENT: Final = 600.0  # seconds after the end in which missing Events of a stored result are still written
Key = TypeVar("Key")
Value = TypeVar("Value")
REMEMBERED: Final = 10_000
REMEMBERED_RUNS: Final = 1000
SOON: Final = Requeue(0.05)

# Called when a run starts, or after its result is stored; called repeatedly, so each hook must remember what it did.
# `live` is the stored job. An error of one hook does not keep the others from being called.
Follower = Callable[[Job, Manifest, Context], Awaitable[Requeue | None]]
# Adds fields that must be stored together with the new status; gets the previous status, too
Pledge = Callable[[Job, Status, Status], Status]


class Builds(Protocol):
    async def look(self, job: Job, mark: str, context: Context) -> BuildStanding:
        """State of the build with this mark; starts the build if it does not exist."""

    async def end(self, job: Job, context: Context) -> None:
        """Stop the build."""


class Models(Protocol):
    async def check(self, job: Job, context: Context) -> Mapping[str, Any]:
        """Check the models; returns the content of `status.modelValidationResult`."""


class Notebooks:
    name = "notebooks"

    def __init__(
        self,
        runs: Runs,
        *,
        builds: Builds,
        models: Models,
        metrics: Metrics | None = None,
        watches: Sequence[Watch] = (),
        at_start: Sequence[Follower] = (),
        after_result: Sequence[Follower] = (),
        pledges: Sequence[Pledge] = (),
    ) -> None:
        self.watches = (Watch(KIND, itself), *watches)
        self.metrics = metrics or Metrics()
        self._runs, self._builds, self._models = runs, builds, models
        self._at_start, self._after_result, self._pledges = tuple(at_start), tuple(after_result), tuple(pledges)
        self._told: dict[tuple[str, str], bool] = {}
        self._uids: dict[ResourceKey, str] = {}
        self._given: dict[RunKey, tuple[str, ...]] = {}  # Secret values that a run must not show
        self._cloning: dict[RunKey, float] = {}  # start time

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        began, result = context.clock.monotonic(), "success"
        try:
            return await self._reconcile(key, context)
        except Conflict:  # the job changed since it was read
            result = "requeue"
            return SOON
        except Exception as error:
            result = "error"
            labels = {"namespace": key.namespace, "error_type": type(error).__name__}
            self.metrics.count(metric_updates.ERRORS, labels)
            raise
        finally:
            labels = {"namespace": key.namespace, "result": result}
            self.metrics.observe(metric_updates.RECONCILED, context.clock.monotonic() - began, labels)

    async def _reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = await context.cluster.get(key)
        if live is None or live["metadata"].get("deletionTimestamp"):
            await self._runs.end(key, None, context)
            self.metrics.stands(self._uids.pop(key, ""), key.namespace, "")
            return None
        job, status = read_job(live), live.get("status") or {}
        self._uids[key] = job.uid
        if state_machine.wants_run(job, status):
            return await self._begin(job, live, status, context)
        self.metrics.stands(job.uid, key.namespace, str(status.get("phase")))
        if status.get("phase") in TERMINAL:
            return await self._ended(job, live, status, context)
        step = await self._step(job, live, status, context)
        if step is None:
            return SOON
        await self._store(job, live, step, context)
        return Requeue(step.again) if step.again is not None else None

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _begin(self, job: Job, live: Manifest, status: Status, context: Context) -> Requeue | None:
        """Stop the run of an earlier spec first: two runs of a job must not write the same files."""
        await self._runs.end(job.key, None, context)
        await _call(self._at_start, job, live, context)
        await self._store(job, live, state_machine.begun(job, status, context.clock.now()), context)
        for each in problems(live):
            if not each.fatal:
                mark = f"{job.generation}.{each}"
                await self._tell(job, live, events.Happening("SpecWarning", str(each), mark, is_warning=True), context)
        return None

    async def _step(self, job: Job, live: Manifest, status: Status, context: Context) -> Step | None:
        phase, now = status.get("phase"), context.clock.now
        if phase == INITIALIZING:
            return state_machine.initialized(job, status, problems(live), now())
        if phase == BUILDING:
            build = await self._builds.look(job, state_machine.mark(status), context)
            step = state_machine.built(job, status, build, now())
            if step.status["phase"] in TERMINAL:
                await self._builds.end(job, context)
            return step
        if phase == BUILT:
            return state_machine.running(job, status, now())
        wait = deadlines.retries_in(job, status, now())
        if wait is not None:
            return Step(status, again=wait) if wait > 0 else await self._again(job, status, context)
        if state_machine.needs_models(job, status):
            return state_machine.checked(job, status, await self._checked(job, context), now())
        return await self._ran(job, status, context)

    async def _again(self, job: Job, status: Status, context: Context) -> Step:
        await self._runs.end(job.key, state_machine.run_key(job, status), context)
        return state_machine.running(job, status, context.clock.now())

    async def _ran(self, job: Job, status: Status, context: Context) -> Step | None:
        """Start or observe the run. The image is the built one, if any; the timeout is what is left of it."""
        built = (status.get("buildStatus") or {}).get("imageReference")
        left = deadlines.time_left(job, status, context.clock.now())
        given = replace(job, timeout=left, image=str(built or job.image))
        run = state_machine.run_key(job, status)
        standing = without(await self._runs.look(given, run, context), await self._secrets(job, run, context))
        if standing.revision and run in self._cloning:
            metric_updates.cloned(self.metrics, job, context.clock.monotonic() - self._cloning.pop(run))
        has_begun = (deadlines.attempt(status) or {}).get("startTime")
        if standing.state != "absent" or has_begun:
            return state_machine.ran(job, status, standing, context.clock.now())
        if missing := await _missing_claim(job, context):
            said = f"Waiting for PersistentVolumeClaim {missing}: create it, or correct the volume"
            return state_machine.waiting(job, status, said, context.clock.now())
        began = context.clock.monotonic()
        try:
            await self._runs.start(given, run, context)
        except ArgosyError as error:
            metric_updates.started(self.metrics, job, is_good=False)
            return state_machine.refused(job, status, error, context.clock.now())
        metric_updates.started(self.metrics, job, is_good=True)
        _remember(self._cloning, run, began, REMEMBERED_RUNS)
        return None

    async def _secrets(self, job: Job, run: RunKey, context: Context) -> tuple[str, ...]:
        """Secret values that the run was given, read once when it starts."""
        if run not in self._given:
            _remember(self._given, run, await secrets_of(job, context.cluster), REMEMBERED_RUNS)
        return self._given[run]

    async def _checked(self, job: Job, context: Context) -> Mapping[str, Any]:
        began = context.clock.monotonic()
        found = await self._models.check(job, context)
        metric_updates.checked(self.metrics, job, found, context.clock.monotonic() - began)
        return found

    async def _ended(self, job: Job, live: Manifest, status: Status, context: Context) -> Requeue | None:
        """Handle a finished job; results written by another controller are left alone."""
        if state_machine.is_overdue(status):
            await self._runs.end(job.key, state_machine.run_key(job, status), context)
        if not status.get("observedGeneration"):
            return None
        done = deadlines.moment(status.get("completionTime"))
        if done is not None and (context.clock.now() - done).total_seconds() < RECENT:
            for each in events.ended(job, status):
                await self._tell(job, live, each, context)
        return await _call(self._after_result, job, live, context)

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _store(self, job: Job, live: Manifest, step: Step, context: Context) -> None:
        before, after = live.get("status") or {}, step.status
        for pledge in self._pledges:
            after = pledge(job, before, after)
        changed: dict[str, Any] = {name: value for name, value in after.items() if before.get(name) != value}
        changed |= {name: None for name in before if name not in after}
        if changed:
            metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "uid": job.uid}
            patch = {"metadata": metadata, "status": changed}
            stored = await context.cluster.patch(job.key, patch, subresource="status", manager=MANAGER)
            metric_updates.stored(self.metrics, job, before, after)
            for each in events.happenings(job, before, after):
                await self._tell(job, stored, each, context)
        if step.ends:
            await self._runs.end(job.key, state_machine.run_key(job, after), context)

    async def _tell(self, job: Job, live: Manifest, happening: events.Happening, context: Context) -> None:
        which = (job.uid, f"{happening.reason}/{happening.mark}")
        if which in self._told:
            return
        _remember(self._told, which, True, REMEMBERED)
        level = logging.WARNING if happening.is_warning else logging.INFO
        log.log(level, "%s: %s: %s", job.key, happening.reason, happening.message.partition("\n")[0])
        await events.tell(job, live, happening, context.cluster, context.clock.now())


def _remember(known: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Store the value, and drop the oldest one if the map is full."""
    if len(known) >= most:
        del known[next(iter(known))]
    known[key] = value


async def _missing_claim(job: Job, context: Context) -> str:
    """k8s: a Pod waits for its claims; a local run waits too, so that no model is written to nowhere."""
    for name in job.claims().values():
        if await context.cluster.get(ResourceKey("", "PersistentVolumeClaim", job.namespace, name)) is None:
            return name
    return ""


async def _call(followers: Sequence[Follower], job: Job, live: Manifest, context: Context) -> Requeue | None:
    """Call all hooks in order; the first error is raised after the last call."""
    soonest: float | None = None
    failed: ArgosyError | None = None
    for each in followers:
        try:
            again = await each(job, live, context)
        except Conflict:
            again = SOON
        except ArgosyError as error:
            again, failed = None, failed or error
        if again is not None:
            soonest = again.after if soonest is None else min(soonest, again.after)
    if failed is not None:
        raise failed
    return Requeue(soonest) if soonest is not None else None
