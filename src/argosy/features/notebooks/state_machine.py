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

from argosy.errors import (
    ArgosyError,
)  # fmt: skip
from argosy.features.notebooks import deadlines, durations, statuses
from argosy.features.notebooks.error_categories import outcome_of
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.problems import Problem
from argosy.features.notebooks.run_backend import Outcome, RunKey, Standing
from argosy.features.notebooks.statuses import (
    BUILDING,
    BUILT,
    FAILED,
    INITIALIZING,
    RUNNING,
    SUCCEEDED,
    TERMINAL,
    Fields,
    Status,
)  # fmt: skip
from argosy.kube.objects.timestamps import written

GRACE: Final = 15.0  # seconds: a run reports its own timeout, with more detail, unless it hangs
MODELS_LOOK, BUILD_LOOK, LATER = 3.0, 2.0, 1.0
OVERDUE: Final = "DeadlineExceeded"  # reason of an attempt that did not end by itself
Cells = Sequence[Mapping[str, Any]]
NEVER_AGAIN: Final = ("configuration_error", "git_authentication_failed")


@dataclass(frozen=True)
class Step:
    status: Status  # to store; missing fields are removed
    again: float | None = None  # seconds until the next reconcile, unless something happens before
    begins: bool = False  # a new run starts
    ends: bool = False  # the run must be stopped


@dataclass(frozen=True)
class BuildStanding:
    state: Literal["absent", "running", "complete", "failed", "unavailable"]
    name: str = ""
    image: str = ""
    message: str = ""
    strategy: str = ""


# -- starting a run ----------------------------------------------------------------------------------------------------


def wants_run(job: Job, status: Status) -> bool:
    """True if the job has never run, its spec changed, or a re-run was requested after the last run ended."""
    phase, observed = status.get("phase"), status.get("observedGeneration")
    if not phase:
        return True
    if observed is None:  # written by another controller: valid only if it must be about this spec
        return not (phase in TERMINAL and status.get("completionTime") and job.generation == 1)
    if observed != job.generation:
        return True
    if phase in TERMINAL:
        return bool(job.re_run) and job.re_run != status.get("observedReRun")
    return phase not in (INITIALIZING, BUILDING, BUILT, RUNNING)


def begun(job: Job, status: Status, now: datetime) -> Step:
    """Start a run; of earlier runs, only attempts, triggers and conditions are kept."""
    status = _closed(status, "Cancelled", "Cancelled", "another run was requested", now)
    kept = {name: status[name] for name in ("attempts", "triggers", "conditions") if status.get(name)}
    fresh: Fields = {
        **kept,
        "observedGeneration": job.generation,
        "startTime": written(now),
        **({"observedReRun": job.re_run} if job.re_run else {}),
    }
    return Step(_phase(job, fresh, INITIALIZING, "Initializing", "Initializing notebook validation", now))


def initialized(job: Job, status: Status, problems: Sequence[Problem], now: datetime) -> Step:
    fatal = [each for each in problems if each.fatal]
    if fatal:
        more = f" (and {len(fatal) - 1} more)" if len(fatal) > 1 else ""
        told = Outcome(False, f"{fatal[0]}{more}", "configuration_error")
        return failed(job, status, told, now, whole="; ".join(map(str, fatal)))
    if job.build is not None:
        pending = {"phase": "Pending", "startTime": written(now), "strategy": job.build.strategy}
        fields = {**status, "buildStatus": pending}
        return Step(_phase(job, fields, BUILDING, "BuildPending", "Building validation environment", now))
    return running(job, status, now)


def running(job: Job, status: Status, now: datetime) -> Step:
    """Start another attempt of the notebook."""
    attempts = [dict(each) for each in status.get("attempts") or ()]
    number = max((int(each.get("number") or 0) for each in attempts), default=0) + 1
    new = {"number": number, "generation": job.generation, "phase": RUNNING}
    cleared = {name: value for name, value in status.items() if name not in ("results", "validationPodName")}
    fields = {**cleared, "attempts": [*attempts[1 - statuses.MOST_ATTEMPTS :], new]}
    return Step(_phase(job, fields, RUNNING, "ValidationPending", "Starting validation", now), begins=True)


def run_key(job: Job, status: Status) -> RunKey:
    return RunKey(job.uid, job.generation, int((deadlines.attempt(status) or {}).get("number") or 1))


def mark(status: Status) -> str:
    """Identifies a run among those of its job: two can start within one second."""
    asked = hashlib.sha256(str(status.get("observedReRun") or "").encode()).hexdigest()[:8]
    return f"{status.get('observedGeneration')}-{asked}-{status.get('startTime')}"


# -- building an image -------------------------------------------------------------------------------------------------


def built(job: Job, status: Status, build: BuildStanding, now: datetime) -> Step:
    assert job.build is not None
    before = status.get("buildStatus") or {}
    started = deadlines.moment(before.get("startTime")) or now
    known: Fields = {
        **before, "phase": "Running", "startTime": written(started), "strategy": build.strategy or job.build.strategy,
        **({"buildName": build.name} if build.name else {}),
    }  # fmt: skip
    left = job.build.timeout - (now - started).total_seconds()
    if build.state == "complete" and build.image:
        known |= _ended(started, now) | {"phase": "Complete", "imageReference": build.image}
        fields = {**status, "buildStatus": known}
        return Step(_phase(job, fields, BUILT, "BuildComplete", "Build complete, preparing validation", now))
    if build.state in ("absent", "running") and left > 0:
        said = statuses.first_line(build.message) or "Building validation environment"
        fields = {**status, "buildStatus": {**known, "message": said}}
        step = _phase(job, fields, BUILDING, "BuildInProgress", "Building validation environment", now)
        return Step(step, again=min(BUILD_LOOK, max(left, 0.05)))
    reason, category = build.message, "build_failed"
    if build.state in ("absent", "running"):
        reason, category = f"not done within {durations.written(job.build.timeout)}", "build_timeout"
    elif build.state == "complete":
        reason = "the build is complete but reports no image"
    said = f"Build failed: {reason.strip() or statuses.NO_REASON}"
    known |= _ended(started, now) | {"phase": "Failed", "message": statuses.first_line(said)}
    return failed(job, {**status, "buildStatus": known}, Outcome(False, said, category), now)


def _ended(started: datetime, now: datetime) -> Fields:
    seconds = max((now - started).total_seconds(), 0.0)
    return {"completionTime": written(now), "duration": durations.written(seconds)}


# -- checking models ---------------------------------------------------------------------------------------------------


def needs_models(job: Job, status: Status) -> bool:
    """Models are checked until they pass, once per run."""
    return job.models is not None and not (status.get("modelValidationResult") or {}).get("success")


def checked(job: Job, status: Status, result: Mapping[str, Any], now: datetime) -> Step:
    assert job.models is not None
    fields = {**status, "modelValidationResult": dict(result)}
    if result.get("success"):
        return Step(_phase(job, fields, RUNNING, "ValidationPending", "Models are ready, starting validation", now))
    message = str(result.get("message") or "the models are not ready")
    left = job.models.timeout - (now - deadlines.running_since(status, now)).total_seconds()
    if left <= 0:
        return failed(job, fields, Outcome(False, f"model validation: {message}", "model_validation_failed"), now)
    said = statuses.first_line(f"Waiting for models: {message}")
    return Step(_phase(job, fields, RUNNING, "WaitingForDependency", said, now), again=min(MODELS_LOOK, left))


def waiting(job: Job, status: Status, message: str, now: datetime) -> Step:
    """Wait for a missing dependency, at most as long as the job's timeout."""
    if (now - deadlines.running_since(status, now)).total_seconds() > job.timeout:
        said = f"{message}, for more than {durations.written(job.timeout)}"
        return failed(job, status, Outcome(False, said, "configuration_error"), now)
    return Step(_phase(job, status, RUNNING, "WaitingForDependency", statuses.first_line(message), now), again=LATER)


# -- running a notebook ------------------------------------------------------------------------------------------------


def ran(job: Job, status: Status, standing: Standing, now: datetime) -> Step:
    """`run_state` is `absent` only if the run existed before."""
    if standing.state == "ended" and standing.outcome is not None:
        return _judged(job, _progressed(status, standing, now, has_begun=True), standing, standing.outcome, now)
    if standing.state in ("lost", "absent", "ended"):
        said = standing.message.strip() or "the run disappeared before it reported a result"
        outcome = Outcome(False, said, "infrastructure_error", retriable=True)
        return _judged(job, _progressed(status, standing, now, has_begun=True), standing, outcome, now)
    has_begun = standing.state == "running"
    fields = _progressed(status, standing, now, has_begun=has_begun)
    deadline = deadlines.deadline(job, fields)
    if deadline is not None and now > deadline + timedelta(seconds=GRACE):
        return overdue(job, fields, standing, now)
    said = _progress(standing) if has_begun else statuses.first_line(standing.message) or "Waiting for a free slot"
    reason = "ValidationInProgress" if has_begun else "ValidationPending"
    return Step(_phase(job, fields, RUNNING, reason, statuses.first_line(said), now), again=deadlines.pace(fields, now))


def overdue(job: Job, status: Status, standing: Standing, now: datetime) -> Step:
    message = f"not done within {durations.written(job.timeout)}"
    step = _judged(job, status, standing, Outcome(False, message, "notebook_timeout"), now)
    attempts = [*step.status["attempts"][:-1], {**step.status["attempts"][-1], "reason": OVERDUE}]
    return Step({**step.status, "attempts": attempts}, ends=True)


def refused(job: Job, status: Status, error: ArgosyError, now: datetime) -> Step:
    """Handle a failed start. Raises the error again if the same call may soon succeed."""
    outcome = outcome_of(error)
    if outcome is None:
        if (now - deadlines.running_since(status, now)).total_seconds() <= job.timeout:
            raise error
        late = f"the run could not be started within {durations.written(job.timeout)}: {error}"
        outcome = Outcome(False, late, "pod_creation_failed")
    return _judged(job, status, Standing("absent"), outcome, now)


def is_overdue(status: Status) -> bool:
    """True if the last attempt had to be stopped and may still be running."""
    return (deadlines.attempt(status) or {}).get("reason") == OVERDUE


# -- finishing a run ---------------------------------------------------------------------------------------------------


def _judged(job: Job, status: Status, standing: Standing, outcome: Outcome, now: datetime) -> Step:
    fields: Fields = {**status, **statuses.judged(outcome)}
    if outcome.passed:
        # A blank message says nothing. The backend may know of more cells than it reports.
        said = outcome.message.strip() or statuses.success(standing.cells)
        said = statuses.noted(said, outcome)
        done = _closed(fields, SUCCEEDED, "Succeeded", said, now)
        if done.get("attempts"):
            done["attempts"] = statuses.remembered(done["attempts"], outcome.artefacts)
        return Step(_phase(job, done, SUCCEEDED, "ValidationComplete", said, now, GitCloned="True"))
    count = int(status.get("retryCount") or 0)
    message = statuses.failure(outcome, standing.cells)
    if not _is_tried_again(job, outcome) or count >= job.retry.most:
        return failed(job, fields, outcome, now, cells=standing.cells)
    wait = job.retry.wait(count + 1)
    deadline = deadlines.deadline(job, status)
    if deadline is not None and now + timedelta(seconds=wait) >= deadline:
        whole = f"{statuses.details(outcome, standing.cells)}; no time is left for a retry"
        return failed(job, fields, outcome, now, cells=standing.cells, whole=whole)
    closed = _closed(fields, FAILED, statuses.reason_of(outcome), message, now)
    retried = {**closed, "retryCount": count + 1, "lastRetryTime": written(now)}
    said = statuses.first_line(f"{message}; retry {count + 1}/{job.retry.most} in {durations.written(wait)}")
    return Step(_phase(job, retried, RUNNING, "ValidationPending", said, now), again=wait)


def _is_tried_again(job: Job, outcome: Outcome) -> bool:
    return outcome.retriable or (job.retry.on == "any" and outcome.category not in NEVER_AGAIN)


def failed(job: Job, status: Status, outcome: Outcome, now: datetime, *, cells: Cells = (), whole: str = "") -> Step:
    """Fail the job with a message, a reason and a completion time."""
    said = statuses.failure(outcome, cells)
    reason = statuses.reason_of(outcome)
    fields = _closed(status, FAILED, reason, said, now)
    more = {"GitCloned": "False"} if reason.startswith("Git") else {}
    done = _phase(job, fields, FAILED, reason, whole or statuses.details(outcome, cells), now, **more)
    return Step({**done, "message": said})


def _closed(status: Status, phase: str, reason: str, message: str, now: datetime) -> Fields:
    """Close the open attempt."""
    attempts = [dict(each) for each in status.get("attempts") or ()]
    if attempts and not attempts[-1].get("completionTime") and status.get("phase") == RUNNING:
        attempts[-1] |= {"phase": phase, "reason": reason, "message": message, "completionTime": written(now)}
    return {**status, **({"attempts": attempts} if attempts else {})}


# -- helpers -----------------------------------------------------------------------------------------------------------


def _phase(job: Job, status: Status, phase: str, reason: str, message: str, now: datetime, **more: str) -> Fields:
    known = status.get("conditions") or ()
    if status.get("gitCommit"):
        more = {"GitCloned": "True", **more}
    if build := status.get("buildStatus"):
        more = {"BuildReady": "True" if build.get("phase") == "Complete" else "False", **more}
    told = statuses.conditions(known, phase, reason, message, job.generation, now, **more)
    fields = {**status, "phase": phase, "message": statuses.first_line(message), "conditions": told}
    if phase in TERMINAL:
        fields["completionTime"] = written(now)
    return {name: value for name, value in fields.items() if value is not None}


def _progressed(status: Status, standing: Standing, now: datetime, *, has_begun: bool) -> Fields:
    attempts = [dict(each) for each in status.get("attempts") or ()] or [{"number": 1}]
    last = attempts[-1]
    if has_begun:
        last.setdefault("startTime", written(now))
    if standing.pod:
        last["podName"] = standing.pod
    if standing.revision:
        last["gitCommit"] = standing.revision
    fields: Fields = {**status, "attempts": attempts}
    for name, value in (("validationPodName", standing.pod), ("gitCommit", standing.revision)):
        if value:
            fields[name] = value
    if standing.cells:
        fields["results"] = statuses.results(standing.cells)
    return fields


def _progress(standing: Standing) -> str:
    done = sum(each.get("status") != "Skipped" for each in standing.cells)
    of = f" of {standing.total}" if standing.total else ""
    return f"Validating notebook: {len(standing.cells)}{of} cells done" if done else "Validating notebook"
