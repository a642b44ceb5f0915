"""State machine of a job: Initializing, Building, BuildComplete, ValidationRunning, then Succeeded or Failed.

In: a job, its status, observations, the time. Out: a Step: the status to store, and when to reconcile again. Never:
I/O. Phases only go forward within a run. A retry stays in ValidationRunning, so that the phase does not flap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from argosy.errors import ArgosyError  # fmt: skip
from argosy.features.notebooks import deadlines, go_durations, notebook_validation_job_status
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import (
    BUILD_COMPLETE,
    BUILDING,
    FAILED,
    INITIALIZING,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
    Fields,
    Status,
)  # fmt: skip
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, RunOutcome
from argosy.features.notebooks.run_outcome_from_error import find_outcome
from argosy.features.notebooks.spec_validation import SpecProblem
from argosy.kube.objects.timestamps_and_delays import format_timestamp

TIMEOUT_GRACE_SECONDS: Final = 15.0  # seconds: a run reports its own timeout, with more detail, unless it hangs
MODEL_POLL_SECONDS, BUILD_POLL_SECONDS, DEPENDENCY_POLL_SECONDS = 3.0, 2.0, 1.0
OVERDUE_REASON: Final = "DeadlineExceeded"  # reason of an attempt that did not end by itself
Cells = Sequence[Mapping[str, Any]]
NON_RETRIABLE_CATEGORIES: Final = ("configuration_error", "git_authentication_failed")


@dataclass(frozen=True)
class JobStep:
    status: Status  # to store; missing fields are removed
    requeue_seconds: float | None = None  # seconds until the next reconcile, unless something happens before
    starts_run: bool = False  # a new run starts
    stops_run: bool = False  # the run must be stopped


@dataclass(frozen=True)
class BuildState:
    state: Literal["absent", "running", "complete", "failed", "unavailable"]
    name: str = ""
    image: str = ""
    message: str = ""
    strategy: str = ""


# -- starting a run ----------------------------------------------------------------------------------------------------


def should_start_run(job: NotebookJob, status: Status) -> bool:
    """True if the job has never run, its spec changed, or a re-run was requested after the last run ended."""
    phase, observed_generation = status.get("phase"), status.get("observedGeneration")
    if not phase:
        return True
    if observed_generation is None:  # written by another controller: valid only if it must be about this spec
        return not (phase in TERMINAL and status.get("completionTime") and job.generation == 1)
    if observed_generation != job.generation:
        return True
    if phase in TERMINAL:
        return bool(job.re_run) and job.re_run != status.get("observedReRun")
    return phase not in (INITIALIZING, BUILDING, BUILD_COMPLETE, RUNNING)


def start_run(job: NotebookJob, status: Status, now: datetime) -> JobStep:
    """Start a run; of earlier runs, only attempts, triggers and conditions are kept."""
    status = _close_attempt(status, "Cancelled", "Cancelled", "another run was requested", now)
    kept_fields = {name: status[name] for name in ("attempts", "triggers", "conditions") if status.get(name)}
    new_status: Fields = {
        **kept_fields,
        "observedGeneration": job.generation,
        "startTime": format_timestamp(now),
        **({"observedReRun": job.re_run} if job.re_run else {}),
    }
    return JobStep(_set_phase(job, new_status, INITIALIZING, "Initializing", "Initializing notebook validation", now))


def start_build_or_attempt(job: NotebookJob, status: Status, problems: Sequence[SpecProblem], now: datetime) -> JobStep:
    fatal_problems = [problem for problem in problems if problem.fatal]
    if fatal_problems:
        more_text = f" (and {len(fatal_problems) - 1} more)" if len(fatal_problems) > 1 else ""
        outcome = RunOutcome(False, f"{fatal_problems[0]}{more_text}", "configuration_error")
        return fail(job, status, outcome, now, details="; ".join(map(str, fatal_problems)))
    if job.build is not None:
        pending = {"phase": "Pending", "startTime": format_timestamp(now), "strategy": job.build.strategy}
        fields = {**status, "buildStatus": pending}
        return JobStep(_set_phase(job, fields, BUILDING, "BuildPending", "Building validation environment", now))
    return start_attempt(job, status, now)


def start_attempt(job: NotebookJob, status: Status, now: datetime) -> JobStep:
    """Start another attempt of the notebook."""
    attempts = [dict(entry) for entry in status.get("attempts") or ()]
    number = max((int(entry.get("number") or 0) for entry in attempts), default=0) + 1
    new_attempt = {"number": number, "generation": job.generation, "phase": RUNNING}
    kept_fields = {name: value for name, value in status.items() if name not in ("results", "validationPodName")}
    fields = {**kept_fields, "attempts": [*attempts[1 - notebook_validation_job_status.MAX_ATTEMPTS :], new_attempt]}
    return JobStep(_set_phase(job, fields, RUNNING, "ValidationPending", "Starting validation", now), starts_run=True)


def get_run_key(job: NotebookJob, status: Status) -> RunKey:
    return RunKey(job.uid, job.generation, int((deadlines.get_last_attempt(status) or {}).get("number") or 1))


def build_run_id(status: Status) -> str:
    """Identifies a run among those of its job: two can start within one second."""
    re_run_digest = hashlib.sha256(str(status.get("observedReRun") or "").encode()).hexdigest()[:8]
    return f"{status.get('observedGeneration')}-{re_run_digest}-{status.get('startTime')}"


# -- building an image -------------------------------------------------------------------------------------------------


def update_build(job: NotebookJob, status: Status, build: BuildState, now: datetime) -> JobStep:
    assert job.build is not None
    build_status = status.get("buildStatus") or {}
    started_at = deadlines.parse_time(build_status.get("startTime")) or now
    new_build_status: Fields = {
        **build_status,
        "phase": "Running",
        "startTime": format_timestamp(started_at),
        "strategy": build.strategy or job.build.strategy,
        **({"buildName": build.name} if build.name else {}),
    }
    seconds_left = job.build.timeout - (now - started_at).total_seconds()
    if build.state == "complete" and build.image:
        new_build_status |= _build_end_fields(started_at, now) | {"phase": "Complete", "imageReference": build.image}
        fields = {**status, "buildStatus": new_build_status}
        return JobStep(
            _set_phase(job, fields, BUILD_COMPLETE, "BuildComplete", "Build complete, preparing validation", now)
        )
    if build.state in ("absent", "running") and seconds_left > 0:
        message = notebook_validation_job_status.get_first_line(build.message) or "Building validation environment"
        fields = {**status, "buildStatus": {**new_build_status, "message": message}}
        step = _set_phase(job, fields, BUILDING, "BuildInProgress", "Building validation environment", now)
        return JobStep(step, requeue_seconds=min(BUILD_POLL_SECONDS, max(seconds_left, 0.05)))
    reason, category = build.message, "build_failed"
    if build.state in ("absent", "running"):
        reason, category = f"not done within {go_durations.format_duration(job.build.timeout)}", "build_timeout"
    elif build.state == "complete":
        reason = "the build is complete but reports no image"
    message = f"Build failed: {reason.strip() or notebook_validation_job_status.NO_REASON}"
    new_build_status |= _build_end_fields(started_at, now) | {
        "phase": "Failed",
        "message": notebook_validation_job_status.get_first_line(message),
    }
    return fail(job, {**status, "buildStatus": new_build_status}, RunOutcome(False, message, category), now)


def _build_end_fields(started: datetime, now: datetime) -> Fields:
    seconds = max((now - started).total_seconds(), 0.0)
    return {"completionTime": format_timestamp(now), "duration": go_durations.format_duration(seconds)}


# -- checking models ---------------------------------------------------------------------------------------------------


def should_check_models(job: NotebookJob, status: Status) -> bool:
    """Models are checked until they pass, once per run."""
    return job.models is not None and not (status.get("modelValidationResult") or {}).get("success")


def record_model_validation_result(
    job: NotebookJob, status: Status, result: Mapping[str, Any], now: datetime
) -> JobStep:
    assert job.models is not None
    fields = {**status, "modelValidationResult": dict(result)}
    if result.get("success"):
        return JobStep(
            _set_phase(job, fields, RUNNING, "ValidationPending", "Models are ready, starting validation", now)
        )
    message = str(result.get("message") or "the models are not ready")
    seconds_left = job.models.timeout - (now - deadlines.get_running_since(status, now)).total_seconds()
    if seconds_left <= 0:
        return fail(job, fields, RunOutcome(False, f"model validation: {message}", "model_validation_failed"), now)
    waiting_message = notebook_validation_job_status.get_first_line(f"Waiting for models: {message}")
    return JobStep(
        _set_phase(job, fields, RUNNING, "WaitingForDependency", waiting_message, now),
        requeue_seconds=min(MODEL_POLL_SECONDS, seconds_left),
    )


def wait_for_dependency(job: NotebookJob, status: Status, message: str, now: datetime) -> JobStep:
    """Wait for a missing dependency, at most as long as the job's timeout."""
    if (now - deadlines.get_running_since(status, now)).total_seconds() > job.timeout:
        timeout_message = f"{message}, for more than {go_durations.format_duration(job.timeout)}"
        return fail(job, status, RunOutcome(False, timeout_message, "configuration_error"), now)
    return JobStep(
        _set_phase(
            job, status, RUNNING, "WaitingForDependency", notebook_validation_job_status.get_first_line(message), now
        ),
        requeue_seconds=DEPENDENCY_POLL_SECONDS,
    )


# -- running a notebook ------------------------------------------------------------------------------------------------


def update_run(job: NotebookJob, status: Status, run_state: NotebookRunState, now: datetime) -> JobStep:
    """`run_state` is `absent` only if the run existed before."""
    if run_state.state == "ended" and run_state.outcome is not None:
        return _finish_run_or_retry(
            job, _add_progress(status, run_state, now, has_begun=True), run_state, run_state.outcome, now
        )
    if run_state.state in ("lost", "absent", "ended"):
        message = run_state.message.strip() or "the run disappeared before it reported a result"
        outcome = RunOutcome(False, message, "infrastructure_error", retriable=True)
        return _finish_run_or_retry(job, _add_progress(status, run_state, now, has_begun=True), run_state, outcome, now)
    has_begun = run_state.state == "running"
    fields = _add_progress(status, run_state, now, has_begun=has_begun)
    deadline = deadlines.compute_deadline(job, fields)
    if deadline is not None and now > deadline + timedelta(seconds=TIMEOUT_GRACE_SECONDS):
        return stop_overdue_run(job, fields, run_state, now)
    message = (
        _describe_progress(run_state)
        if has_begun
        else notebook_validation_job_status.get_first_line(run_state.message) or "Waiting for a free slot"
    )
    reason = "ValidationInProgress" if has_begun else "ValidationPending"
    return JobStep(
        _set_phase(job, fields, RUNNING, reason, notebook_validation_job_status.get_first_line(message), now),
        requeue_seconds=deadlines.choose_poll_seconds(fields, now),
    )


def stop_overdue_run(job: NotebookJob, status: Status, run_state: NotebookRunState, now: datetime) -> JobStep:
    message = f"not done within {go_durations.format_duration(job.timeout)}"
    step = _finish_run_or_retry(job, status, run_state, RunOutcome(False, message, "notebook_timeout"), now)
    attempts = [*step.status["attempts"][:-1], {**step.status["attempts"][-1], "reason": OVERDUE_REASON}]
    return JobStep({**step.status, "attempts": attempts}, stops_run=True)


def handle_failed_start(job: NotebookJob, status: Status, error: ArgosyError, now: datetime) -> JobStep:
    """Handle a failed start. Raises the error again if the same call may soon succeed."""
    outcome = find_outcome(error)
    if outcome is None:
        if (now - deadlines.get_running_since(status, now)).total_seconds() <= job.timeout:
            raise error
        timeout_message = f"the run could not be started within {go_durations.format_duration(job.timeout)}: {error}"
        outcome = RunOutcome(False, timeout_message, "pod_creation_failed")
    return _finish_run_or_retry(job, status, NotebookRunState("absent"), outcome, now)


def has_attempt_timed_out(status: Status) -> bool:
    """True if the last attempt had to be stopped and may still be running."""
    return (deadlines.get_last_attempt(status) or {}).get("reason") == OVERDUE_REASON


# -- finishing a run ---------------------------------------------------------------------------------------------------


def _finish_run_or_retry(
    job: NotebookJob, status: Status, run_state: NotebookRunState, outcome: RunOutcome, now: datetime
) -> JobStep:
    fields: Fields = {**status, **notebook_validation_job_status.build_validation_fields(outcome)}
    if outcome.passed:
        # A blank message says nothing. The backend may know of more cells than it reports.
        status_message = outcome.message.strip() or notebook_validation_job_status.describe_success(run_state.cells)
        status_message = notebook_validation_job_status.add_parameter_notes(status_message, outcome)
        closed_status = _close_attempt(fields, SUCCEEDED, "Succeeded", status_message, now)
        if closed_status.get("attempts"):
            closed_status["attempts"] = notebook_validation_job_status.add_files_to_last_attempt(
                closed_status["attempts"], outcome.artefacts
            )
        return JobStep(
            _set_phase(job, closed_status, SUCCEEDED, "ValidationComplete", status_message, now, GitCloned="True")
        )
    retry_count = int(status.get("retryCount") or 0)
    message = notebook_validation_job_status.describe_failure(outcome, run_state.cells)
    if not _is_retriable(job, outcome) or retry_count >= job.retry.max_retries:
        return fail(job, fields, outcome, now, cells=run_state.cells)
    delay_seconds = job.retry.compute_delay(retry_count + 1)
    deadline = deadlines.compute_deadline(job, status)
    if deadline is not None and now + timedelta(seconds=delay_seconds) >= deadline:
        failure = notebook_validation_job_status.describe_failure_in_full(outcome, run_state.cells)
        details = f"{failure}; no time is left for a retry"
        return fail(job, fields, outcome, now, cells=run_state.cells, details=details)
    closed_fields = _close_attempt(fields, FAILED, notebook_validation_job_status.choose_reason(outcome), message, now)
    retry_fields = {**closed_fields, "retryCount": retry_count + 1, "lastRetryTime": format_timestamp(now)}
    status_message = notebook_validation_job_status.get_first_line(
        f"{message}; retry {retry_count + 1}/{job.retry.max_retries} in {go_durations.format_duration(delay_seconds)}"
    )
    return JobStep(
        _set_phase(job, retry_fields, RUNNING, "ValidationPending", status_message, now), requeue_seconds=delay_seconds
    )


def _is_retriable(job: NotebookJob, outcome: RunOutcome) -> bool:
    return outcome.retriable or (job.retry.on == "any" and outcome.category not in NON_RETRIABLE_CATEGORIES)


def fail(
    job: NotebookJob, status: Status, outcome: RunOutcome, now: datetime, *, cells: Cells = (), details: str = ""
) -> JobStep:
    """Fail the job with a message, a reason and a completion time."""
    failure_message = notebook_validation_job_status.describe_failure(outcome, cells)
    reason = notebook_validation_job_status.choose_reason(outcome)
    fields = _close_attempt(status, FAILED, reason, failure_message, now)
    more_conditions = {"GitCloned": "False"} if reason.startswith("Git") else {}
    failed_status = _set_phase(
        job,
        fields,
        FAILED,
        reason,
        details or notebook_validation_job_status.describe_failure_in_full(outcome, cells),
        now,
        **more_conditions,
    )
    return JobStep({**failed_status, "message": failure_message})


def _close_attempt(status: Status, phase: str, reason: str, message: str, now: datetime) -> Fields:
    """Close the open attempt."""
    attempts = [dict(attempt) for attempt in status.get("attempts") or ()]
    if attempts and not attempts[-1].get("completionTime") and status.get("phase") == RUNNING:
        attempts[-1] |= {"phase": phase, "reason": reason, "message": message, "completionTime": format_timestamp(now)}
    return {**status, **({"attempts": attempts} if attempts else {})}


# -- helpers -----------------------------------------------------------------------------------------------------------


def _set_phase(
    job: NotebookJob, status: Status, phase: str, reason: str, message: str, now: datetime, **more_conditions: str
) -> Fields:
    old_conditions = status.get("conditions") or ()
    if status.get("gitCommit"):
        more_conditions = {"GitCloned": "True", **more_conditions}
    if build := status.get("buildStatus"):
        more_conditions = {"BuildReady": "True" if build.get("phase") == "Complete" else "False", **more_conditions}
    new_conditions = notebook_validation_job_status.build_conditions(
        old_conditions, phase, reason, message, job.generation, now, **more_conditions
    )
    fields = {
        **status,
        "phase": phase,
        "message": notebook_validation_job_status.get_first_line(message),
        "conditions": new_conditions,
    }
    if phase in TERMINAL:
        fields["completionTime"] = format_timestamp(now)
    return {name: value for name, value in fields.items() if value is not None}


def _add_progress(status: Status, run_state: NotebookRunState, now: datetime, *, has_begun: bool) -> Fields:
    attempts = [dict(attempt) for attempt in status.get("attempts") or ()] or [{"number": 1}]
    last_attempt = attempts[-1]
    if has_begun:
        last_attempt.setdefault("startTime", format_timestamp(now))
    if run_state.pod:
        last_attempt["podName"] = run_state.pod
    if run_state.revision:
        last_attempt["gitCommit"] = run_state.revision
    fields: Fields = {**status, "attempts": attempts}
    for name, value in (("validationPodName", run_state.pod), ("gitCommit", run_state.revision)):
        if value:
            fields[name] = value
    if run_state.cells:
        fields["results"] = notebook_validation_job_status.build_results(run_state.cells)
    return fields


def _describe_progress(run_state: NotebookRunState) -> str:
    has_results = sum(cell.get("status") != "Skipped" for cell in run_state.cells)
    total_text = f" of {run_state.cell_count}" if run_state.cell_count else ""
    return (
        f"Validating notebook: {len(run_state.cells)}{total_text} cells done" if has_results else "Validating notebook"
    )
