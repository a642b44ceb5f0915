"""Property test of the notebook state machine: invariants of a job status for any sequence of run and build states."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.features.notebooks import deadlines, state_machine
from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION, NotebookJob, read_job
from argosy.features.notebooks.run_backend import NotebookRunState, RunOutcome
from argosy.features.notebooks.runner.failure_category_names import CATEGORIES
from argosy.features.notebooks.state_machine import BuildState, JobStep
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.schema.crd import build_custom_kinds
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from support.examples import examples

(SCHEMA,) = build_custom_kinds(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = ["Initializing", "Building", "BuildComplete", "ValidationRunning", "Succeeded", "Failed"]
CELLS = st.lists(
    st.fixed_dictionaries({
        "cell": st.integers(0, 50), "type": st.sampled_from(["code", "markdown", "raw"]),
        "status": st.sampled_from(["Success", "Failure", "Skipped"]), "seconds": st.floats(0, 1e6),
        "output": st.text(max_size=50), "errorName": st.text(max_size=20), "errorMessage": st.text(max_size=50),
    }),
    max_size=5,
).map(tuple)  # fmt: skip
OUTCOMES = st.builds(RunOutcome, st.booleans(), st.text(max_size=60), st.sampled_from(["", *CATEGORIES]), st.booleans())
STANDINGS = st.builds(
    NotebookRunState, st.sampled_from(["absent", "waiting", "running", "ended", "lost"]), CELLS, st.integers(0, 50),
    st.text(max_size=10), st.sampled_from(["", "c0ffee"]), st.none() | OUTCOMES, st.text(max_size=30),
)  # fmt: skip
BUILDS = st.builds(
    BuildState, st.sampled_from(["absent", "running", "complete", "failed", "unavailable"]), st.text(max_size=9),
    st.sampled_from(["", "image@sha256:1"]), st.text(max_size=30),
)  # fmt: skip
TIMES = st.floats(0, 900)


def job(policy: dict[str, Any], *, builds: bool) -> NotebookJob:
    spec = {
        "notebook": {"git": {"url": "https://example.org/a.git", "ref": "main"}, "path": "a.ipynb"},
        "podConfig": {"containerImage": "a:1", "buildConfig": {"enabled": builds}}, "retryPolicy": policy,
    }  # fmt: skip
    return read_job({"metadata": {"name": "a", "namespace": "b", "uid": "u", "generation": 1}, "spec": spec})


def step(
    notebook_job: NotebookJob, status: Any, standing: NotebookRunState, build: BuildState, now: datetime
) -> JobStep:
    """Return the next step as the controller computes it."""
    if state_machine.should_start_run(notebook_job, status):
        return state_machine.start_run(notebook_job, status, now)
    if status["phase"] == "Initializing":
        return state_machine.start_build_or_attempt(notebook_job, status, [], now)
    if status["phase"] == "Building":
        return state_machine.update_build(notebook_job, status, build, now)
    if status["phase"] == "BuildComplete":
        return state_machine.start_attempt(notebook_job, status, now)
    wait = deadlines.compute_retry_delay(notebook_job, status, now)
    if wait is not None:
        return (
            JobStep(status, requeue_seconds=wait)
            if wait > 0
            else state_machine.start_attempt(notebook_job, status, now)
        )
    has_begun = (deadlines.get_last_attempt(status) or {}).get("startTime")
    if standing.state == "absent" and not has_begun:
        return JobStep(status)
    return state_machine.update_run(notebook_job, status, standing, now)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from([{}, {"on": "any"}, {"maxRetries": 0}, {"on": "any", "maxRetries": 10, "backoff": "1s"}]),
    st.booleans(),
    st.lists(st.tuples(STANDINGS, BUILDS, TIMES), max_size=25),
)
def test_status_is_always_valid_and_its_phase_never_moves_back(policy: Any, builds: bool, happens: Any) -> None:
    notebook_job, status, now = job(policy, builds=builds), {}, NOW
    for standing, build, seconds in happens:
        before, now = status, now + timedelta(seconds=seconds)
        if before.get("phase") in ("Succeeded", "Failed"):
            assert not state_machine.should_start_run(notebook_job, before)
            break
        status = dict(step(notebook_job, before, standing, build, now).status)
        if before:
            assert ORDER.index(status["phase"]) >= ORDER.index(before["phase"])
        check(notebook_job, status)


def check(notebook_job: NotebookJob, status: dict[str, Any]) -> None:
    is_over = status["phase"] in ("Succeeded", "Failed")
    assert ("completionTime" in status) is is_over
    assert status["message"]
    assert "\n" not in status["message"]
    assert len(status["message"]) <= 200
    assert 0 <= status.get("retryCount", 0) <= notebook_job.retry.max_retries
    words = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert len(words) == len(status["conditions"])
    assert (words["Ready"], words["Failed"]) == (
        "True" if status["phase"] == "Succeeded" else "False", "True" if status["phase"] == "Failed" else "False",
    )  # fmt: skip
    numbers = [attempt["number"] for attempt in status.get("attempts") or ()]
    assert numbers == list(range(1, len(numbers) + 1))
    live = {
        "apiVersion": API_VERSION,
        "kind": NOTEBOOK_JOB.kind,
        "metadata": {"name": "a", "namespace": "b"},
        "status": status,
    }
    decoded, unknown = SCHEMA.decode(live)
    assert (unknown, [str(error) for error in SCHEMA.validate(decoded)]) == ([], [])
