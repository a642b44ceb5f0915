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
from argosy.features.notebooks import controller_prometheus_metric_updates, deadlines, events, state_machine
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob, read_job
from argosy.features.notebooks.notebook_validation_job_status import (
    BUILD_COMPLETE,
    BUILDING,
    INITIALIZING,
    TERMINAL,
    Status,
)
from argosy.features.notebooks.run_backend import RunBackend, RunKey
from argosy.features.notebooks.run_state_redaction import load_secret_values, redact_run_state
from argosy.features.notebooks.spec_validation import find_problems
from argosy.features.notebooks.state_machine import BuildState, JobStep
from argosy.kube.controller import ControllerContext, Requeue, Watch, itself
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB, PERSISTENT_VOLUME_CLAIM

log = logging.getLogger(__name__)
MANAGER: Final = "notebooks"
# Seconds after the end in which missing Events of a stored result are still written.
EVENT_CATCH_UP_SECONDS: Final = 600.0
Key = TypeVar("Key")
Value = TypeVar("Value")
MAX_REMEMBERED_EVENTS: Final = 10_000
MAX_REMEMBERED_RUNS: Final = 1000
CONFLICT_REQUEUE: Final = Requeue(0.05)

# Called when a run starts, or after its result is stored; called repeatedly, so each hook must remember what it did.
# `live` is the stored job. An error of one hook does not keep the others from being called.
JobHook = Callable[[NotebookJob, Manifest, ControllerContext], Awaitable[Requeue | None]]
# Adds fields that must be stored together with the new status; gets the previous status, too
StatusMutator = Callable[[NotebookJob, Status, Status], Status]


class BuildBackend(Protocol):
    async def observe(self, job: NotebookJob, run_id: str, context: ControllerContext) -> BuildState:
        """State of the build with this mark; starts the build if it does not exist."""

    async def stop(self, job: NotebookJob, context: ControllerContext) -> None:
        """Stop the build."""


class ModelChecker(Protocol):
    async def check(self, job: NotebookJob, context: ControllerContext) -> Mapping[str, Any]:
        """Check the models; returns the content of `status.modelValidationResult`."""


class NotebookJobController:
    name = "notebooks"

    def __init__(
        self,
        backend: RunBackend,
        *,
        builds: BuildBackend,
        model_checker: ModelChecker,
        metrics: NotebookMetrics | None = None,
        watches: Sequence[Watch] = (),
        start_hooks: Sequence[JobHook] = (),
        result_hooks: Sequence[JobHook] = (),
        status_mutators: Sequence[StatusMutator] = (),
    ) -> None:
        self.watches = (Watch(NOTEBOOK_JOB, itself), *watches)
        self.metrics = metrics or NotebookMetrics()
        self._backend, self._builds, self._model_checker = backend, builds, model_checker
        self._start_hooks, self._result_hooks, self._status_mutators = (
            tuple(start_hooks),
            tuple(result_hooks),
            tuple(status_mutators),
        )
        self._written_events: dict[tuple[str, str], bool] = {}
        self._uids: dict[ResourceKey, str] = {}
        self._run_secrets: dict[RunKey, tuple[str, ...]] = {}  # Secret values that a run must not show
        self._clone_started_at: dict[RunKey, float] = {}  # start time

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        started_at, result = context.clock.monotonic(), "success"
        try:
            return await self._reconcile_job(key, context)
        except Conflict:  # the job changed since it was read
            result = "requeue"
            return CONFLICT_REQUEUE
        except Exception as error:
            result = "error"
            labels = {"namespace": key.namespace, "error_type": type(error).__name__}
            self.metrics.count(controller_prometheus_metric_updates.RECONCILE_ERRORS_METRIC, labels)
            raise
        finally:
            labels = {"namespace": key.namespace, "result": result}
            self.metrics.observe(
                controller_prometheus_metric_updates.RECONCILE_DURATION_METRIC,
                context.clock.monotonic() - started_at,
                labels,
            )

    async def _reconcile_job(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        live = await context.cluster.get(key)
        if live is None or live["metadata"].get("deletionTimestamp"):
            await self._backend.stop(key, None, context)
            self.metrics.set_phase(self._uids.pop(key, ""), key.namespace, "")
            return None
        job, status = read_job(live), live.get("status") or {}
        self._uids[key] = job.uid
        if state_machine.should_start_run(job, status):
            return await self._start_run(job, live, status, context)
        self.metrics.set_phase(job.uid, key.namespace, str(status.get("phase")))
        if status.get("phase") in TERMINAL:
            return await self._report_finished_run(job, live, status, context)
        step = await self._next_step(job, live, status, context)
        if step is None:
            return CONFLICT_REQUEUE
        await self._store_step(job, live, step, context)
        return Requeue(step.requeue_seconds) if step.requeue_seconds is not None else None

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _start_run(
        self, job: NotebookJob, live: Manifest, status: Status, context: ControllerContext
    ) -> Requeue | None:
        """Stop the run of an earlier spec first: two runs of a job must not write the same files."""
        await self._backend.stop(job.key, None, context)
        await _call_hooks(self._start_hooks, job, live, context)
        await self._store_step(job, live, state_machine.start_run(job, status, context.clock.now()), context)
        for problem in find_problems(live):
            if not problem.fatal:
                event_mark = f"{job.generation}.{problem}"
                await self._write_event(
                    job, live, events.JobEvent("SpecWarning", str(problem), event_mark, is_warning=True), context
                )
        return None

    async def _next_step(
        self, job: NotebookJob, live: Manifest, status: Status, context: ControllerContext
    ) -> JobStep | None:
        phase, now = status.get("phase"), context.clock.now
        if phase == INITIALIZING:
            return state_machine.start_build_or_attempt(job, status, find_problems(live), now())
        if phase == BUILDING:
            build = await self._builds.observe(job, state_machine.build_run_id(status), context)
            step = state_machine.update_build(job, status, build, now())
            if step.status["phase"] in TERMINAL:
                await self._builds.stop(job, context)
            return step
        if phase == BUILD_COMPLETE:
            return state_machine.start_attempt(job, status, now())
        wait = deadlines.compute_retry_delay(job, status, now())
        if wait is not None:
            return JobStep(status, requeue_seconds=wait) if wait > 0 else await self._retry(job, status, context)
        if state_machine.should_check_models(job, status):
            return state_machine.record_model_validation_result(
                job, status, await self._check_models(job, context), now()
            )
        return await self._start_or_observe_run(job, status, context)

    async def _retry(self, job: NotebookJob, status: Status, context: ControllerContext) -> JobStep:
        await self._backend.stop(job.key, state_machine.get_run_key(job, status), context)
        return state_machine.start_attempt(job, status, context.clock.now())

    async def _start_or_observe_run(
        self, job: NotebookJob, status: Status, context: ControllerContext
    ) -> JobStep | None:
        """Start or observe the run. The image is the built one, if any; the timeout is what is left of it."""
        built = (status.get("buildStatus") or {}).get("imageReference")
        seconds_left = deadlines.compute_seconds_left(job, status, context.clock.now())
        run_job = replace(job, timeout=seconds_left, image=str(built or job.image))
        run = state_machine.get_run_key(job, status)
        run_state = redact_run_state(
            await self._backend.observe(run_job, run, context), await self._load_run_secrets(job, run, context)
        )
        if run_state.revision and run in self._clone_started_at:
            controller_prometheus_metric_updates.record_clone(
                self.metrics, job, context.clock.monotonic() - self._clone_started_at.pop(run)
            )
        has_begun = (deadlines.get_last_attempt(status) or {}).get("startTime")
        if run_state.state != "absent" or has_begun:
            return state_machine.update_run(job, status, run_state, context.clock.now())
        if missing := await _find_missing_claim(job, context):
            message = f"Waiting for PersistentVolumeClaim {missing}: create it, or correct the volume"
            return state_machine.wait_for_dependency(job, status, message, context.clock.now())
        started_at = context.clock.monotonic()
        try:
            await self._backend.start(run_job, run, context)
        except ArgosyError as error:
            controller_prometheus_metric_updates.record_pod_creation(self.metrics, job, has_succeeded=False)
            return state_machine.handle_failed_start(job, status, error, context.clock.now())
        controller_prometheus_metric_updates.record_pod_creation(self.metrics, job, has_succeeded=True)
        _remember(self._clone_started_at, run, started_at, MAX_REMEMBERED_RUNS)
        return None

    async def _load_run_secrets(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> tuple[str, ...]:
        """Secret values that the run was given, read once when it starts."""
        if run not in self._run_secrets:
            _remember(self._run_secrets, run, await load_secret_values(job, context.cluster), MAX_REMEMBERED_RUNS)
        return self._run_secrets[run]

    async def _check_models(self, job: NotebookJob, context: ControllerContext) -> Mapping[str, Any]:
        started_at = context.clock.monotonic()
        result = await self._model_checker.check(job, context)
        controller_prometheus_metric_updates.record_model_check(
            self.metrics, job, result, context.clock.monotonic() - started_at
        )
        return result

    async def _report_finished_run(
        self, job: NotebookJob, live: Manifest, status: Status, context: ControllerContext
    ) -> Requeue | None:
        """Handle a finished job; results written by another controller are left alone."""
        if state_machine.has_attempt_timed_out(status):
            await self._backend.stop(job.key, state_machine.get_run_key(job, status), context)
        if not status.get("observedGeneration"):
            return None
        completed_at = deadlines.parse_time(status.get("completionTime"))
        if completed_at is not None and (context.clock.now() - completed_at).total_seconds() < EVENT_CATCH_UP_SECONDS:
            for draft in events.list_result_events(job, status):
                await self._write_event(job, live, draft, context)
        return await _call_hooks(self._result_hooks, job, live, context)

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _store_step(self, job: NotebookJob, live: Manifest, step: JobStep, context: ControllerContext) -> None:
        before, after = live.get("status") or {}, step.status
        for mutate_status in self._status_mutators:
            after = mutate_status(job, before, after)
        changed: dict[str, Any] = {name: value for name, value in after.items() if before.get(name) != value}
        changed |= {name: None for name in before if name not in after}
        if changed:
            metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "uid": job.uid}
            patch = {"metadata": metadata, "status": changed}
            stored = await context.cluster.patch(job.key, patch, subresource="status", manager=MANAGER)
            controller_prometheus_metric_updates.record_stored_status(self.metrics, job, before, after)
            for draft in events.list_step_events(job, before, after):
                await self._write_event(job, stored, draft, context)
        if step.stops_run:
            await self._backend.stop(job.key, state_machine.get_run_key(job, after), context)

    async def _write_event(
        self, job: NotebookJob, live: Manifest, draft: events.JobEvent, context: ControllerContext
    ) -> None:
        event_id = (job.uid, f"{draft.reason}/{draft.mark}")
        if event_id in self._written_events:
            return
        _remember(self._written_events, event_id, True, MAX_REMEMBERED_EVENTS)
        level = logging.WARNING if draft.is_warning else logging.INFO
        log.log(level, "%s: %s: %s", job.key, draft.reason, draft.message.partition("\n")[0])
        await events.write_event(job, live, draft, context.cluster, context.clock.now())


def _remember(cache: dict[Key, Value], key: Key, value: Value, max_entries: int) -> None:
    """Store the value, and drop the oldest one if the map is full."""
    if len(cache) >= max_entries:
        del cache[next(iter(cache))]
    cache[key] = value


async def _find_missing_claim(job: NotebookJob, context: ControllerContext) -> str:
    """k8s: a Pod waits for its claims; a local run waits too, so that no model is written to nowhere."""
    for name in job.map_claims().values():
        if await context.cluster.get(ResourceKey(*PERSISTENT_VOLUME_CLAIM, job.namespace, name)) is None:
            return name
    return ""


async def _call_hooks(
    hooks: Sequence[JobHook], job: NotebookJob, live: Manifest, context: ControllerContext
) -> Requeue | None:
    """Call all hooks in order; the first error is raised after the last call."""
    min_delay: float | None = None
    first_error: ArgosyError | None = None
    for hook in hooks:
        try:
            requeue = await hook(job, live, context)
        except Conflict:
            requeue = CONFLICT_REQUEUE
        except ArgosyError as error:
            requeue, first_error = None, first_error or error
        if requeue is not None:
            min_delay = requeue.after if min_delay is None else min(min_delay, requeue.after)
    if first_error is not None:
        raise first_error
    return Requeue(min_delay) if min_delay is not None else None
