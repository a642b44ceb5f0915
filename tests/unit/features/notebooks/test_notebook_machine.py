"""The state machine of a job, as a table: what is known, what it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.errors import (
    AddressRefused,
    ArgosyError,
    Conflict,
    Forbidden,
    Invalid,
    SourceRefused,
    SourceUnreachable,
    TransientError,
    UnknownRef,
    UserError,
)
from argosy.features.notebooks import deadlines, events, state_machine, statuses
from argosy.features.notebooks.notebook_validation_job import NotebookJob, read_job
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, RunOutcome
from argosy.features.notebooks.run_outcome_from_error import build_refused_outcome
from argosy.features.notebooks.spec_validation import find_problems
from argosy.features.notebooks.state_machine import BuildState, JobStep
from argosy.gitops.health.assess import assess_by_rule
from argosy.gitops.health.bundled_rules import load_profile_rules
from argosy.kube.resource_key import GroupKind

NOW = datetime(2026, 1, 24, 22, 0, tzinfo=UTC)
NOTEBOOK = {"git": {"url": "https://example.org/a.git", "ref": "main"}, "path": "train.ipynb"}
CELLS = (
    {"cell": 0, "type": "markdown", "status": "Skipped"},
    {"cell": 1, "type": "code", "status": "Success", "seconds": 1.5, "output": "42"},
)
BROKEN = (
    *CELLS,
    {"cell": 2, "type": "code", "status": "Failure", "seconds": 0.1, "errorName": "ModuleNotFoundError",
     "errorMessage": "ModuleNotFoundError: No module named 'pandas'"},
)  # fmt: skip
MISSING = RunOutcome(
    False, "cell 2: ModuleNotFoundError: …", "dependency_install_failed", results={"packages_missing": ["pandas"]}
)
LIVE = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob", "metadata": {"name": "train"}}
LOST = RunOutcome(False, "the node went away", "infrastructure_error", retriable=True)

Status = Mapping[str, Any]


def job(generation: int = 1, annotations: dict[str, str] | None = None, **spec: Any) -> NotebookJob:
    pod = {"containerImage": "image:1", **spec.pop("pod", {})}
    metadata = {"name": "train", "namespace": "ml", "uid": "u1", "generation": generation}
    return read_job({
        "apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob",
        "metadata": {**metadata, "annotations": annotations or {}},
        "spec": {"notebook": NOTEBOOK, "podConfig": pod, **spec},
    })  # fmt: skip


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def started(notebook_job: NotebookJob, now: datetime = NOW) -> Status:
    """A job whose notebook has its turn."""
    status = state_machine.start_run(notebook_job, {}, now).status
    return state_machine.initialize(notebook_job, status, [], now).status


def going(notebook_job: NotebookJob, now: datetime = NOW, status: Status | None = None) -> Status:
    return state_machine.update_run(
        notebook_job, status or started(notebook_job), NotebookRunState("running", CELLS, 3, "pod-1", "c0ffee"), now
    ).status


def ended(
    notebook_job: NotebookJob, status: Status, outcome: RunOutcome, now: datetime, cells: Any = BROKEN
) -> JobStep:
    return state_machine.update_run(
        notebook_job, status, NotebookRunState("ended", cells, 3, "pod-1", "c0ffee", outcome), now
    )


def condition(status: Status, name: str) -> Mapping[str, Any]:
    return next((entry for entry in status["conditions"] if entry["type"] == name), {"status": "", "reason": ""})


# -- whether a run begins ----------------------------------------------------------------------------------------------

DONE = {"phase": "Succeeded", "observedGeneration": 1, "completionTime": "2026-01-24T22:00:00Z"}
WANTS = [
    ("a new job", job(), {}, True),
    ("one that was seen", job(), {"phase": "Initializing", "observedGeneration": 1}, False),
    ("one that ended", job(), DONE, False),
    ("another spec after the end", job(2), DONE, True),
    ("another spec in the middle", job(2), {"phase": "ValidationRunning", "observedGeneration": 1}, True),
    ("another spec after a failure", job(2), {**DONE, "phase": "Failed"}, True),
    ("somebody asks again", job(annotations={"mlops.dev/re-run": "b"}), {**DONE, "observedReRun": "a"}, True),
    ("it was asked already", job(annotations={"mlops.dev/re-run": "a"}), {**DONE, "observedReRun": "a"}, False),
    ("asked while it runs", job(annotations={"mlops.dev/re-run": "b"}), {**DONE, "phase": "Building"}, False),
    ("a result of the original for this spec", job(), {"phase": "Succeeded", "completionTime": "x"}, False),
    ("a result of the original for who knows which spec", job(2), {"phase": "Succeeded", "completionTime": "x"}, True),
    ("a failed build of the original, without a time", job(), {"phase": "Failed"}, True),
    ("the original's Running", job(), {"phase": "Running"}, True),
    ("a phase that there is not", job(), {"phase": "Pending", "observedGeneration": 1}, True),
]


@pytest.mark.parametrize(
    ("notebook_job", "status", "expected"), [case[1:] for case in WANTS], ids=[case[0] for case in WANTS]
)
def test_a_run_begins_for(notebook_job: NotebookJob, status: Status, expected: bool) -> None:
    assert state_machine.should_start_run(notebook_job, status) is expected


def test_a_new_run_keeps_nothing_of_the_old_one_but_its_attempts() -> None:
    notebook_job = job(2, {"mlops.dev/re-run": "b"})
    old = {**ended(job(), going(job()), MISSING, after(5)).status, "retryCount": 3, "modelValidationResult": {}}
    status = state_machine.start_run(notebook_job, old, after(60)).status
    assert set(status) == {
        "phase", "message", "startTime", "observedGeneration", "observedReRun", "attempts", "conditions"
    }  # fmt: skip
    assert (status["phase"], status["observedGeneration"], status["observedReRun"]) == ("Initializing", 2, "b")
    assert condition(status, "Ready")["status"] == condition(status, "Failed")["status"] == "False"
    assert condition(status, "Stalled")["status"] == ""


# -- forward -----------------------------------------------------------------------------------------------------------


def test_a_job_without_a_build_goes_straight_to_its_notebook() -> None:
    status = state_machine.start_run(job(), {}, NOW).status
    assert (status["phase"], status["startTime"]) == ("Initializing", "2026-01-24T22:00:00Z")
    step = state_machine.initialize(job(), status, [], NOW)
    assert (step.status["phase"], step.starts_run) == ("ValidationRunning", True)
    assert state_machine.get_run_key(job(), step.status) == RunKey("u1", 1, 1)


def test_a_job_that_is_wrong_fails_at_once_with_its_reason_and_time() -> None:
    wrong = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob",
             "metadata": {"name": "train", "namespace": "ml"}, "spec": {}}  # fmt: skip
    status = state_machine.initialize(
        job(), state_machine.start_run(job(), {}, NOW).status, find_problems(wrong), NOW
    ).status
    assert (status["phase"], status["completionTime"]) == ("Failed", "2026-01-24T22:00:00Z")
    assert status["message"].startswith("Validation failed: spec.notebook.git.url: is required")
    assert condition(status, "Failed")["reason"] == "ConfigurationError"


def test_a_running_job_never_leaves_its_phase_and_tells_how_far_it_is() -> None:
    status = going(job(), after(1))
    assert (status["phase"], status["message"]) == ("ValidationRunning", "Validating notebook: 2 of 3 cells done")
    assert (status["validationPodName"], status["gitCommit"]) == ("pod-1", "c0ffee")
    assert status["results"] == [
        {"cellIndex": 0, "status": "Skipped"},
        {"cellIndex": 1, "status": "Success", "executionTime": "1.5s", "output": "42"},
    ]
    assert condition(status, "Progressing")["status"] == condition(status, "GitCloned")["status"] == "True"


def test_a_run_that_waits_has_not_begun_and_its_time_does_not_count() -> None:
    step = state_machine.update_run(
        job(timeout="10s"), started(job()), NotebookRunState("waiting", message="2 others run"), after(3600)
    )
    assert (step.status["phase"], step.status["message"]) == ("ValidationRunning", "2 others run")
    assert "startTime" not in step.status["attempts"][-1]


def test_success_says_how_many_cells_and_makes_kubectl_wait_work() -> None:
    status = ended(job(), going(job()), RunOutcome(True, ""), after(7), CELLS).status
    assert status["message"] == "Validation completed: 1/1 cells succeeded (100.0% success rate)"
    assert (status["phase"], status["completionTime"]) == ("Succeeded", "2026-01-24T22:00:07Z")
    for name in ("Ready", "Complete", "ValidationComplete"):
        assert condition(status, name)["status"] == "True", name
        assert condition(status, name)["observedGeneration"] == 1
    assert status["attempts"] == [{
        "number": 1, "generation": 1, "phase": "Succeeded", "reason": "Succeeded", "podName": "pod-1",
        "gitCommit": "c0ffee", "message": status["message"],
        "startTime": "2026-01-24T22:00:00Z", "completionTime": "2026-01-24T22:00:07Z",
    }]  # fmt: skip


def test_a_notebook_of_words_alone_succeeds_wholly() -> None:
    status = ended(job(), going(job()), RunOutcome(True, ""), after(7), CELLS[:1]).status
    assert status["message"] == "Validation completed: 0/0 cells succeeded (100.0% success rate)"


def test_a_failing_notebook_has_its_cells_in_the_status() -> None:
    status = ended(job(), going(job()), MISSING, after(7)).status
    assert (status["phase"], status["message"]) == ("Failed", "Cell execution failed: ModuleNotFoundError")
    assert status["results"][2] == {
        "cellIndex": 2, "status": "Failure", "executionTime": "0.1s", "errorType": "ModuleNotFoundError",
        "errorMessage": "ModuleNotFoundError: No module named 'pandas'",
    }  # fmt: skip
    failed_condition = condition(status, "Failed")
    assert (failed_condition["status"], failed_condition["reason"]) == ("True", "DependencyInstallFailed")
    assert failed_condition["message"].startswith(
        "cell 2: ModuleNotFoundError: No module named 'pandas'; the image does not contain pandas"
    )
    assert condition(status, "Ready")["status"] == "False"
    assert condition(status, "Stalled")["status"] == "True"


def test_a_cell_that_fails_names_its_error_type_for_the_health_profile_cells() -> None:
    cells = ({**BROKEN[2], "errorName": "ValueError", "errorMessage": "ValueError: bad\nmore"},)
    status = ended(job(), going(job()), RunOutcome(False, "x", "notebook_execution_failed"), after(7), cells).status
    assert status["results"][0]["errorType"] == "ValueError"
    rule = load_profile_rules("cells")[GroupKind("mlops.mlops.dev", "NotebookValidationJob")]
    assessment = assess_by_rule({**LIVE, "status": status}, rule, {})
    assert assessment is not None and assessment.message == "Failed at cell 2: ValueError"


def test_only_a_cell_that_fails_has_an_error_type() -> None:
    cells = ({**CELLS[1], "errorName": "ValueError"}, {**BROKEN[2], "errorName": ""})
    status = ended(job(), going(job()), RunOutcome(False, "x", "notebook_execution_failed"), after(7), cells).status
    assert ["errorType" in result for result in status["results"]] == [False, False]


def test_a_comparison_that_failed_is_told_in_the_original_s_words() -> None:
    comparison = {
        "strategy": "normalized",
        "result": "failed",
        "totalCells": 4,
        "matchedCells": 3,
        "mismatchedCells": 1,
    }
    outcome = RunOutcome(False, "1 cell differs", "golden_comparison_failed", results={"comparison": comparison})
    status = ended(job(), going(job()), outcome, after(7), CELLS).status
    assert status["message"] == "Validation failed: golden notebook comparison failed (3/4 cells matched)"
    assert status["comparisonResult"] == {**comparison, "diffs": []}


def test_a_message_is_one_line_of_moderate_length_without_secrets() -> None:
    outcome = RunOutcome(
        False, f"cannot clone https://me:s3cret@example.org/a.git {'x' * 300}\nand more", "infrastructure_error"
    )
    message = ended(job(), going(job()), outcome, after(7), CELLS).status["message"]
    assert len(message) <= 200
    assert "\n" not in message
    assert "s3cret" not in message


BLANK_RUNS = [
    (NotebookRunState("waiting", message="\r"), "Waiting for a free slot"),
    (NotebookRunState("lost", message=" \n"), "the run disappeared before it reported a result; retry 1/3 in 1m"),
    (
        NotebookRunState("ended", CELLS, 3, outcome=RunOutcome(True, "\r\n")),
        "Validation completed: 1/1 cells succeeded (100.0% success rate)",
    ),
    (
        NotebookRunState("ended", CELLS, 3, outcome=RunOutcome(False, "\t", "infrastructure_error")),
        "no reason was given",
    ),
]


@pytest.mark.parametrize(("standing", "message"), BLANK_RUNS)
def test_a_run_whose_message_is_blank_is_told_in_the_usual_words(standing: NotebookRunState, message: str) -> None:
    status_message = state_machine.update_run(job(), started(job()), standing, after(7)).status["message"]
    assert status_message.removeprefix("Validation failed: ") == message


@pytest.mark.parametrize(
    ("state", "message"),
    [("running", "Building validation environment"), ("failed", "Build failed: no reason was given")],
)
def test_a_build_whose_message_is_blank_is_told_in_the_usual_words(state: Any, message: str) -> None:
    notebook_job, status = building()
    status = state_machine.update_build(notebook_job, status, BuildState(state, message="\r"), after(5)).status
    assert status["message"] == status["buildStatus"]["message"] == message


def test_the_name_of_an_error_cannot_break_the_line() -> None:
    cells = ({**BROKEN[2], "errorName": "Evil\nError" + "x" * 500},)
    assert ended(job(), going(job()), MISSING, after(7), cells).status["message"] == "Cell execution failed: Evil"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("AssertionError", "AssertionError: 72.0% are right, 90% asked for\nand", ": 72.0% are right, 90% asked for"),
        ("AssertionError", "AssertionError: ", ""),
        ("AssertionError", "AssertionError", ""),
        ("KeyError", "KeyError: 'rate'", ": 'rate'"),
        ("ImportError", "ImportError: cannot import name 'x' from 'y'", ""),
        ("ValueError", "ValueError: https://me:s3cret@example.org/", ": https://example.org/"),
    ],
)  # fmt: skip
def test_the_message_tells_what_an_error_says_unless_it_is_of_a_missing_package(
    name: str, text: str, said: str
) -> None:
    cells = ({**BROKEN[2], "errorName": name, "errorMessage": text},)
    message = ended(job(), going(job()), MISSING, after(7), cells).status["message"]
    assert message == f"Cell execution failed: {name}{said}"


def test_a_long_error_is_cut_to_one_line_of_moderate_length() -> None:
    cells = ({**BROKEN[2], "errorName": "ValueError", "errorMessage": "ValueError: " + "x" * 900},)
    message = ended(job(), going(job()), MISSING, after(7), cells).status["message"]
    assert len(message) == 200 and message.startswith("Cell execution failed: ValueError: xxx")


# -- again -------------------------------------------------------------------------------------------------------------


def test_a_fault_of_the_notebook_is_not_tried_again() -> None:
    status = ended(job(), going(job()), MISSING, after(7)).status
    assert status["phase"] == "Failed"
    assert "retryCount" not in status


def test_a_fault_of_the_infrastructure_is_tried_again_after_a_minute() -> None:
    notebook_job = job()
    step = ended(notebook_job, going(notebook_job), LOST, after(7), CELLS)
    assert (step.status["phase"], step.status["retryCount"], step.requeue_seconds) == ("ValidationRunning", 1, 60.0)
    assert step.status["message"] == "Validation failed: the node went away; retry 1/3 in 1m"
    assert deadlines.compute_retry_delay(notebook_job, step.status, after(27)) == 40.0
    assert deadlines.compute_retry_delay(notebook_job, step.status, after(100)) == 0.0
    second = state_machine.start_attempt(notebook_job, step.status, after(67)).status
    assert state_machine.get_run_key(notebook_job, second) == RunKey("u1", 1, 2)
    assert deadlines.compute_retry_delay(notebook_job, second, after(67)) is None
    assert "results" not in second


def test_with_any_a_notebook_is_tried_three_times_again_and_the_document_s_line_appears() -> None:
    notebook_job = job(retryPolicy={"on": "any", "backoff": "1s"})
    status, now = going(notebook_job), 0.0
    waits = []
    for _ in range(3):
        step = ended(notebook_job, status, MISSING, after(now))
        assert step.status["phase"] == "ValidationRunning"
        waits.append(step.requeue_seconds)
        now += 10
        status = going(
            notebook_job, after(now), state_machine.start_attempt(notebook_job, step.status, after(now)).status
        )
    last = ended(notebook_job, status, MISSING, after(now)).status
    assert waits == [1.0, 2.0, 4.0]
    assert (last["phase"], last["message"]) == ("Failed", "Cell execution failed: ModuleNotFoundError")
    assert last["retryCount"] == 3
    assert [attempt["phase"] for attempt in last["attempts"]] == ["Failed"] * 4


@pytest.mark.parametrize("policy", [{"maxRetries": 0}, {"on": "any", "maxRetries": 0}])
def test_without_retries_nothing_is_tried_again(policy: dict[str, Any]) -> None:
    notebook_job = job(retryPolicy=policy)
    assert ended(notebook_job, going(notebook_job), LOST, after(7)).status["phase"] == "Failed"


def test_a_wrong_configuration_is_tried_again_by_no_policy() -> None:
    notebook_job = job(retryPolicy={"on": "any"})
    outcome = RunOutcome(False, "no such kernel", "configuration_error")
    assert ended(notebook_job, going(notebook_job), outcome, after(7)).status["phase"] == "Failed"


@pytest.mark.parametrize("standing", [NotebookRunState("lost"), NotebookRunState("absent"), NotebookRunState("ended")])
def test_a_run_that_vanished_is_tried_again_and_said_to_have_vanished(standing: NotebookRunState) -> None:
    step = state_machine.update_run(job(), going(job()), standing, after(5))
    assert (step.status["phase"], step.status["retryCount"]) == ("ValidationRunning", 1)
    assert "disappeared" in step.status["attempts"][-1]["message"]


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_run_that_does_not_end_in_time_is_ended() -> None:
    notebook_job = job(timeout="10s")
    assert (
        state_machine.update_run(
            notebook_job, going(notebook_job), NotebookRunState("running", CELLS), after(12)
        ).status["phase"]
        == "ValidationRunning"
    )
    step = state_machine.update_run(notebook_job, going(notebook_job), NotebookRunState("running", CELLS), after(26))
    assert (step.status["phase"], step.stops_run) == ("Failed", True)
    assert step.status["message"] == "Validation failed: not done within 10s"
    assert condition(step.status, "Failed")["reason"] == "ValidationTimeout"
    assert state_machine.is_overdue(step.status)


def test_the_timeout_is_for_all_attempts_together() -> None:
    notebook_job = job(timeout="90s", retryPolicy={"backoff": "30s"})
    first = ended(notebook_job, going(notebook_job), LOST, after(20), CELLS)
    again = state_machine.start_attempt(notebook_job, first.status, after(50)).status
    assert deadlines.compute_seconds_left(notebook_job, again, after(50)) == 40.0
    second = ended(notebook_job, going(notebook_job, after(50), again), LOST, after(60), CELLS)
    assert second.status["phase"] == "Failed"
    assert "no time is left for a retry" in condition(second.status, "Failed")["message"]


def test_a_new_run_has_the_whole_timeout_again() -> None:
    notebook_job = job(timeout="90s", annotations={"mlops.dev/re-run": "b"})
    done = ended(notebook_job, going(notebook_job), RunOutcome(True, ""), after(80), CELLS).status
    status = state_machine.initialize(
        notebook_job, state_machine.start_run(notebook_job, done, after(600)).status, [], after(600)
    ).status
    assert deadlines.compute_seconds_left(notebook_job, status, after(600)) == 90.0
    assert state_machine.get_run_key(notebook_job, status).attempt == 2


# -- what a start may meet ---------------------------------------------------------------------------------------------

REFUSALS: list[tuple[ArgosyError, str, str]] = [
    (UserError("no kernel julia"), "Failed", "ConfigurationError"),
    (UnknownRef("no branch x"), "Failed", "GitCloneFailed"),
    (SourceRefused("wants a password"), "Failed", "GitAuthenticationFailed"),
    (SourceUnreachable("no answer"), "ValidationRunning", "ValidationPending"),
    (Forbidden("may not"), "Failed", "PodCreationFailed"),
    (Invalid("no such field"), "Failed", "PodCreationFailed"),
]


@pytest.mark.parametrize(
    ("error", "phase", "reason"), REFUSALS, ids=[type(refusal[0]).__name__ for refusal in REFUSALS]
)
def test_a_start_that_is_refused_leads_to(error: ArgosyError, phase: str, reason: str) -> None:
    status = state_machine.handle_failed_start(job(), started(job()), error, after(1)).status
    assert (status["phase"], condition(status, "Ready")["reason"]) == (phase, reason)


@pytest.mark.parametrize("error", [Conflict("changed"), TransientError("no route")])
def test_what_may_pass_is_not_counted_until_the_time_is_over(error: ArgosyError) -> None:
    with pytest.raises(type(error)):
        state_machine.handle_failed_start(job(), started(job()), error, after(1))
    assert state_machine.handle_failed_start(job(), started(job()), error, after(1801)).status["phase"] == "Failed"


# -- building ----------------------------------------------------------------------------------------------------------


def building(**build: Any) -> tuple[NotebookJob, Status]:
    notebook_job = job(pod={"buildConfig": {"enabled": True, **build}})
    return notebook_job, state_machine.initialize(
        notebook_job, state_machine.start_run(notebook_job, {}, NOW).status, [], NOW
    ).status


def test_a_build_comes_before_the_notebook_and_its_image_is_named() -> None:
    notebook_job, status = building()
    assert (status["phase"], status["buildStatus"]["phase"]) == ("Building", "Pending")
    status = state_machine.update_build(notebook_job, status, BuildState("running", "train-build-1"), after(5)).status
    assert (status["phase"], status["buildStatus"]["phase"]) == ("Building", "Running")
    done = BuildState("complete", "train-build-1", "registry/train@sha256:1")
    status = state_machine.update_build(notebook_job, status, done, after(65)).status
    assert (status["phase"], status["message"]) == ("BuildComplete", "Build complete, preparing validation")
    assert status["buildStatus"] == {
        "phase": "Complete", "startTime": "2026-01-24T22:00:00Z", "completionTime": "2026-01-24T22:01:05Z",
        "duration": "1m5s", "buildName": "train-build-1", "strategy": "s2i",
        "message": "Building validation environment",
        "imageReference": "registry/train@sha256:1",
    }  # fmt: skip
    assert condition(status, "BuildReady")["status"] == "True"
    assert state_machine.start_attempt(notebook_job, status, after(66)).status["phase"] == "ValidationRunning"


BAD_BUILDS = [
    (BuildState("failed", message="Error: step 3"), 5, "Build failed: Error: step 3", "BuildFailed"),
    (BuildState("failed", message="cancelled by somebody"), 5, "Build failed: cancelled by somebody", "BuildFailed"),
    (
        BuildState("unavailable", message="nothing builds here"),
        5,
        "Build failed: nothing builds here",
        "BuildFailed",
    ),
    (BuildState("complete"), 5, "Build failed: the build is complete but reports no image", "BuildFailed"),
    (BuildState("running"), 61, "Build failed: not done within 1m", "BuildTimeout"),
    (BuildState("absent"), 61, "Build failed: not done within 1m", "BuildTimeout"),
]


@pytest.mark.parametrize(("build", "seconds", "message", "reason"), BAD_BUILDS)
def test_a_build_that_does_not_come_to_an_image_fails_the_job_with(
    build: BuildState, seconds: float, message: str, reason: str
) -> None:
    notebook_job, status = building(timeout="1m")
    status = state_machine.update_build(notebook_job, status, build, after(seconds)).status
    assert (status["phase"], status["message"]) == ("Failed", message)
    assert status["completionTime"] == status["buildStatus"]["completionTime"]
    assert (status["buildStatus"]["phase"], condition(status, "Failed")["reason"]) == ("Failed", reason)


# -- models ------------------------------------------------------------------------------------------------------------

ILL = {"phase": "both", "platform": "kserve", "platformDetected": True, "success": False, "message": "m is not ready"}


def test_models_that_are_not_ready_are_waited_for_and_then_fail_the_job() -> None:
    notebook_job = job(modelValidation={"targetModels": ["m"], "timeout": "1m"})
    status = started(notebook_job)
    assert state_machine.should_check_models(notebook_job, status)
    waiting = state_machine.update_models(notebook_job, status, ILL, after(30))
    assert (waiting.status["phase"], waiting.status["message"]) == (
        "ValidationRunning",
        "Waiting for models: m is not ready",
    )
    late = state_machine.update_models(notebook_job, waiting.status, ILL, after(60)).status
    assert (late["phase"], late["message"]) == ("Failed", "Validation failed: model validation: m is not ready")
    assert late["modelValidationResult"] == ILL


def test_models_that_are_ready_are_asked_once_a_run() -> None:
    notebook_job = job(modelValidation={"targetModels": ["m"]})
    status = state_machine.update_models(notebook_job, started(notebook_job), {**ILL, "success": True}, after(1)).status
    assert not state_machine.should_check_models(notebook_job, status)
    assert state_machine.should_check_models(
        notebook_job, state_machine.start_run(notebook_job, status, after(9)).status
    )


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_thousand_cells_with_long_outputs_fit_one_object() -> None:
    cells = tuple({"cell": number, "type": "code", "status": "Success", "output": "x" * 2000} for number in range(1000))
    failing = (
        {"cell": 1000, "type": "code", "status": "Failure", "errorMessage": "E: " + "y" * 1500, "output": "z" * 1500},
    )
    status = ended(job(), going(job()), MISSING, after(7), (*cells, *failing)).status
    assert len(repr(status)) < 500_000
    assert len(status["results"]) == 1001
    assert len(status["results"][-1]["output"]) == 1500


def test_what_was_remarked_of_a_run_stands_in_its_status_and_blocks_nothing() -> None:
    odd = "parameter rat: the notebook does not declare it"
    feedback = statuses.build_validation_fields(RunOutcome(True, "", results={"remarks": [odd]}))["educationalFeedback"]
    assert feedback == [{"cell": -1, "severity": "info", "category": "remark", "message": odd}]


def test_a_parameter_that_no_cell_declares_is_noted_in_the_message_and_told_as_an_event() -> None:
    odd = "parameter rat: the notebook does not declare it; did you mean rate?"
    outcome = RunOutcome(True, "", results={"remarks": ["cell 3: ends the notebook", odd]})
    status = ended(job(), going(job()), outcome, after(7), CELLS).status
    assert status["phase"] == "Succeeded"
    assert status["message"] == f"Validation completed: 1/1 cells succeeded (100.0% success rate); note: {odd}"
    messages = [event.message for event in events.list_result_events(job(), status) if event.reason == "SpecWarning"]
    assert messages == [f"spec.parameters: {odd}"]


def test_an_address_that_a_rule_forbids_is_no_matter_of_credentials() -> None:
    assert (
        build_refused_outcome(AddressRefused("git is not an allowed protocol; use https")).category
        == "configuration_error"
    )
    assert (
        build_refused_outcome(SourceRefused("the host wants other credentials; check it")).category
        == "git_authentication_failed"
    )


def test_the_files_of_the_last_three_good_runs_are_known_also_after_one_that_failed() -> None:
    notebook_job, status = job(), started(job())
    for number in range(1, 6):
        files = ({"path": f"/mnt/{number}", "digest": "sha256:1"}, {"path": "/mnt/" + "a" * 600, "digest": "sha256:2"})
        outcome = RunOutcome(True, "", artefacts=files) if number < 5 else MISSING
        status = ended(notebook_job, going(notebook_job, status=status), outcome, after(number)).status
        status = state_machine.initialize(
            notebook_job, state_machine.start_run(notebook_job, status, after(number)).status, [], NOW
        ).status
    paths_by_attempt = {
        attempt["number"]: [file["path"] for file in attempt.get("artefacts") or ()] for attempt in status["attempts"]
    }
    assert paths_by_attempt == {1: [], 2: ["/mnt/2"], 3: ["/mnt/3"], 4: ["/mnt/4"], 5: [], 6: []}
