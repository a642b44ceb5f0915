"""State machine of a NotebookValidationJob: the status and the actions that follow from each observation."""

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
from argosy.features.notebooks import deadlines, events, notebook_validation_job_status, state_machine
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob, read_job
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
    """Return the status of a job whose first attempt was just started."""
    status = state_machine.start_run(notebook_job, {}, now).status
    return state_machine.start_build_or_attempt(notebook_job, status, [], now).status


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


# -- when a run starts -------------------------------------------------------------------------------------------------

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
def test_run_starts_on_spec_change_or_re_run_request(notebook_job: NotebookJob, status: Status, expected: bool) -> None:
    assert state_machine.should_start_run(notebook_job, status) is expected


def test_new_run_drops_the_previous_status_except_attempts() -> None:
    notebook_job = job(2, {"mlops.dev/re-run": "b"})
    old = {**ended(job(), going(job()), MISSING, after(5)).status, "retryCount": 3, "modelValidationResult": {}}
    status = state_machine.start_run(notebook_job, old, after(60)).status
    assert set(status) == {
        "phase", "message", "startTime", "observedGeneration", "observedReRun", "attempts", "conditions"
    }  # fmt: skip
    assert (status["phase"], status["observedGeneration"], status["observedReRun"]) == ("Initializing", 2, "b")
    assert condition(status, "Ready")["status"] == condition(status, "Failed")["status"] == "False"
    assert condition(status, "Stalled")["status"] == ""


# -- phases and results ------------------------------------------------------------------------------------------------


def test_job_without_a_build_goes_directly_to_validation() -> None:
    status = state_machine.start_run(job(), {}, NOW).status
    assert (status["phase"], status["startTime"]) == ("Initializing", "2026-01-24T22:00:00Z")
    step = state_machine.start_build_or_attempt(job(), status, [], NOW)
    assert (step.status["phase"], step.starts_run) == ("ValidationRunning", True)
    assert state_machine.get_run_key(job(), step.status) == RunKey("u1", 1, 1)


def test_invalid_job_fails_with_reason_and_completion_time() -> None:
    wrong = {"apiVersion": "mlops.mlops.dev/v1alpha1", "kind": "NotebookValidationJob",
             "metadata": {"name": "train", "namespace": "ml"}, "spec": {}}  # fmt: skip
    status = state_machine.start_build_or_attempt(
        job(), state_machine.start_run(job(), {}, NOW).status, find_problems(wrong), NOW
    ).status
    assert (status["phase"], status["completionTime"]) == ("Failed", "2026-01-24T22:00:00Z")
    assert status["message"].startswith("Validation failed: spec.notebook.git.url: is required")
    assert condition(status, "Failed")["reason"] == "ConfigurationError"


def test_running_job_keeps_its_phase_and_reports_progress() -> None:
    status = going(job(), after(1))
    assert (status["phase"], status["message"]) == ("ValidationRunning", "Validating notebook: 2 of 3 cells done")
    assert (status["validationPodName"], status["gitCommit"]) == ("pod-1", "c0ffee")
    assert status["results"] == [
        {"cellIndex": 0, "status": "Skipped"},
        {"cellIndex": 1, "status": "Success", "executionTime": "1.5s", "output": "42"},
    ]
    assert condition(status, "Progressing")["status"] == condition(status, "GitCloned")["status"] == "True"


def test_waiting_run_has_no_start_time_and_does_not_time_out() -> None:
    step = state_machine.update_run(
        job(timeout="10s"), started(job()), NotebookRunState("waiting", message="2 others run"), after(3600)
    )
    assert (step.status["phase"], step.status["message"]) == ("ValidationRunning", "2 others run")
    assert "startTime" not in step.status["attempts"][-1]


def test_success_reports_cell_counts_and_sets_the_conditions_for_kubectl_wait() -> None:
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


def test_notebook_without_code_cells_reports_full_success() -> None:
    status = ended(job(), going(job()), RunOutcome(True, ""), after(7), CELLS[:1]).status
    assert status["message"] == "Validation completed: 0/0 cells succeeded (100.0% success rate)"


def test_failed_notebook_has_its_cell_results_in_status() -> None:
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


def test_error_type_of_a_failed_cell_is_shown_by_the_cells_health_profile() -> None:
    cells = ({**BROKEN[2], "errorName": "ValueError", "errorMessage": "ValueError: bad\nmore"},)
    status = ended(job(), going(job()), RunOutcome(False, "x", "notebook_execution_failed"), after(7), cells).status
    assert status["results"][0]["errorType"] == "ValueError"
    rule = load_profile_rules("cells")[GroupKind("mlops.mlops.dev", "NotebookValidationJob")]
    assessment = assess_by_rule({**LIVE, "status": status}, rule, {})
    assert assessment is not None and assessment.message == "Failed at cell 2: ValueError"


def test_successful_cells_and_empty_error_names_have_no_error_type() -> None:
    cells = ({**CELLS[1], "errorName": "ValueError"}, {**BROKEN[2], "errorName": ""})
    status = ended(job(), going(job()), RunOutcome(False, "x", "notebook_execution_failed"), after(7), cells).status
    assert ["errorType" in result for result in status["results"]] == [False, False]


def test_failed_golden_comparison_uses_the_message_of_the_original_operator() -> None:
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


def test_message_is_one_short_line_without_credentials() -> None:
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
def test_blank_run_message_is_replaced_by_a_default(standing: NotebookRunState, message: str) -> None:
    status_message = state_machine.update_run(job(), started(job()), standing, after(7)).status["message"]
    assert status_message.removeprefix("Validation failed: ") == message


@pytest.mark.parametrize(
    ("state", "message"),
    [("running", "Building validation environment"), ("failed", "Build failed: no reason was given")],
)
def test_blank_build_message_is_replaced_by_a_default(state: Any, message: str) -> None:
    notebook_job, status = building()
    status = state_machine.update_build(notebook_job, status, BuildState(state, message="\r"), after(5)).status
    assert status["message"] == status["buildStatus"]["message"] == message


def test_error_name_in_the_message_ends_at_a_newline() -> None:
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
def test_message_includes_the_error_text_except_for_import_errors(name: str, text: str, said: str) -> None:
    cells = ({**BROKEN[2], "errorName": name, "errorMessage": text},)
    message = ended(job(), going(job()), MISSING, after(7), cells).status["message"]
    assert message == f"Cell execution failed: {name}{said}"


def test_long_error_message_is_truncated_to_200_characters() -> None:
    cells = ({**BROKEN[2], "errorName": "ValueError", "errorMessage": "ValueError: " + "x" * 900},)
    message = ended(job(), going(job()), MISSING, after(7), cells).status["message"]
    assert len(message) == 200 and message.startswith("Cell execution failed: ValueError: xxx")


# -- retries -----------------------------------------------------------------------------------------------------------


def test_notebook_failure_is_not_retried_by_default() -> None:
    status = ended(job(), going(job()), MISSING, after(7)).status
    assert status["phase"] == "Failed"
    assert "retryCount" not in status


def test_infrastructure_failure_is_retried_after_one_minute() -> None:
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


def test_retry_policy_any_retries_a_failing_notebook_three_times() -> None:
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
def test_max_retries_zero_disables_retries(policy: dict[str, Any]) -> None:
    notebook_job = job(retryPolicy=policy)
    assert ended(notebook_job, going(notebook_job), LOST, after(7)).status["phase"] == "Failed"


def test_configuration_error_is_not_retried() -> None:
    notebook_job = job(retryPolicy={"on": "any"})
    outcome = RunOutcome(False, "no such kernel", "configuration_error")
    assert ended(notebook_job, going(notebook_job), outcome, after(7)).status["phase"] == "Failed"


@pytest.mark.parametrize("standing", [NotebookRunState("lost"), NotebookRunState("absent"), NotebookRunState("ended")])
def test_vanished_run_is_retried_and_reported_as_disappeared(standing: NotebookRunState) -> None:
    step = state_machine.update_run(job(), going(job()), standing, after(5))
    assert (step.status["phase"], step.status["retryCount"]) == ("ValidationRunning", 1)
    assert "disappeared" in step.status["attempts"][-1]["message"]


# -- timeouts ----------------------------------------------------------------------------------------------------------


def test_run_is_stopped_after_its_timeout() -> None:
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
    assert state_machine.has_attempt_timed_out(step.status)


def test_timeout_covers_all_attempts_together() -> None:
    notebook_job = job(timeout="90s", retryPolicy={"backoff": "30s"})
    first = ended(notebook_job, going(notebook_job), LOST, after(20), CELLS)
    again = state_machine.start_attempt(notebook_job, first.status, after(50)).status
    assert deadlines.compute_seconds_left(notebook_job, again, after(50)) == 40.0
    second = ended(notebook_job, going(notebook_job, after(50), again), LOST, after(60), CELLS)
    assert second.status["phase"] == "Failed"
    assert "no time is left for a retry" in condition(second.status, "Failed")["message"]


def test_new_run_gets_the_full_timeout() -> None:
    notebook_job = job(timeout="90s", annotations={"mlops.dev/re-run": "b"})
    done = ended(notebook_job, going(notebook_job), RunOutcome(True, ""), after(80), CELLS).status
    status = state_machine.start_build_or_attempt(
        notebook_job, state_machine.start_run(notebook_job, done, after(600)).status, [], after(600)
    ).status
    assert deadlines.compute_seconds_left(notebook_job, status, after(600)) == 90.0
    assert state_machine.get_run_key(notebook_job, status).attempt == 2


# -- start errors ------------------------------------------------------------------------------------------------------

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
def test_start_error_maps_to_phase_and_reason(error: ArgosyError, phase: str, reason: str) -> None:
    status = state_machine.handle_failed_start(job(), started(job()), error, after(1)).status
    assert (status["phase"], condition(status, "Ready")["reason"]) == (phase, reason)


@pytest.mark.parametrize("error", [Conflict("changed"), TransientError("no route")])
def test_transient_start_error_is_raised_until_the_timeout(error: ArgosyError) -> None:
    with pytest.raises(type(error)):
        state_machine.handle_failed_start(job(), started(job()), error, after(1))
    assert state_machine.handle_failed_start(job(), started(job()), error, after(1801)).status["phase"] == "Failed"


# -- builds ------------------------------------------------------------------------------------------------------------


def building(**build: Any) -> tuple[NotebookJob, Status]:
    notebook_job = job(pod={"buildConfig": {"enabled": True, **build}})
    return notebook_job, state_machine.start_build_or_attempt(
        notebook_job, state_machine.start_run(notebook_job, {}, NOW).status, [], NOW
    ).status


def test_build_runs_before_the_notebook_and_reports_its_image() -> None:
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
def test_build_without_an_image_fails_the_job(build: BuildState, seconds: float, message: str, reason: str) -> None:
    notebook_job, status = building(timeout="1m")
    status = state_machine.update_build(notebook_job, status, build, after(seconds)).status
    assert (status["phase"], status["message"]) == ("Failed", message)
    assert status["completionTime"] == status["buildStatus"]["completionTime"]
    assert (status["buildStatus"]["phase"], condition(status, "Failed")["reason"]) == ("Failed", reason)


# -- models ------------------------------------------------------------------------------------------------------------

ILL = {"phase": "both", "platform": "kserve", "platformDetected": True, "success": False, "message": "m is not ready"}


def test_job_waits_for_unready_models_and_fails_at_the_timeout() -> None:
    notebook_job = job(modelValidation={"targetModels": ["m"], "timeout": "1m"})
    status = started(notebook_job)
    assert state_machine.should_check_models(notebook_job, status)
    waiting = state_machine.record_model_validation_result(notebook_job, status, ILL, after(30))
    assert (waiting.status["phase"], waiting.status["message"]) == (
        "ValidationRunning",
        "Waiting for models: m is not ready",
    )
    late = state_machine.record_model_validation_result(notebook_job, waiting.status, ILL, after(60)).status
    assert (late["phase"], late["message"]) == ("Failed", "Validation failed: model validation: m is not ready")
    assert late["modelValidationResult"] == ILL


def test_ready_models_are_checked_once_per_run() -> None:
    notebook_job = job(modelValidation={"targetModels": ["m"]})
    status = state_machine.record_model_validation_result(
        notebook_job, started(notebook_job), {**ILL, "success": True}, after(1)
    ).status
    assert not state_machine.should_check_models(notebook_job, status)
    assert state_machine.should_check_models(
        notebook_job, state_machine.start_run(notebook_job, status, after(9)).status
    )


# -- status size, remarks and artefacts --------------------------------------------------------------------------------


def test_status_of_a_thousand_cells_with_long_outputs_stays_below_500_kb() -> None:
    cells = tuple({"cell": number, "type": "code", "status": "Success", "output": "x" * 2000} for number in range(1000))
    failing = (
        {"cell": 1000, "type": "code", "status": "Failure", "errorMessage": "E: " + "y" * 1500, "output": "z" * 1500},
    )
    status = ended(job(), going(job()), MISSING, after(7), (*cells, *failing)).status
    assert len(repr(status)) < 500_000
    assert len(status["results"]) == 1001
    assert len(status["results"][-1]["output"]) == 1500


def test_remarks_of_a_run_become_info_feedback() -> None:
    odd = "parameter rat: the notebook does not declare it"
    feedback = notebook_validation_job_status.build_validation_fields(RunOutcome(True, "", results={"remarks": [odd]}))[
        "educationalFeedback"
    ]
    assert feedback == [{"cell": -1, "severity": "info", "category": "remark", "message": odd}]


def test_undeclared_parameter_is_reported_in_the_message_and_as_an_event() -> None:
    odd = "parameter rat: the notebook does not declare it; did you mean rate?"
    outcome = RunOutcome(True, "", results={"remarks": ["cell 3: ends the notebook", odd]})
    status = ended(job(), going(job()), outcome, after(7), CELLS).status
    assert status["phase"] == "Succeeded"
    assert status["message"] == f"Validation completed: 1/1 cells succeeded (100.0% success rate); note: {odd}"
    messages = [event.message for event in events.list_result_events(job(), status) if event.reason == "SpecWarning"]
    assert messages == [f"spec.parameters: {odd}"]


def test_forbidden_address_is_a_configuration_error_not_an_authentication_error() -> None:
    assert (
        build_refused_outcome(AddressRefused("git is not an allowed protocol; use https")).category
        == "configuration_error"
    )
    assert (
        build_refused_outcome(SourceRefused("the host wants other credentials; check it")).category
        == "git_authentication_failed"
    )


def test_status_keeps_artefacts_of_the_last_three_successful_attempts() -> None:
    notebook_job, status = job(), started(job())
    for number in range(1, 6):
        files = ({"path": f"/mnt/{number}", "digest": "sha256:1"}, {"path": "/mnt/" + "a" * 600, "digest": "sha256:2"})
        outcome = RunOutcome(True, "", artefacts=files) if number < 5 else MISSING
        status = ended(notebook_job, going(notebook_job, status=status), outcome, after(number)).status
        status = state_machine.start_build_or_attempt(
            notebook_job, state_machine.start_run(notebook_job, status, after(number)).status, [], NOW
        ).status
    paths_by_attempt = {
        attempt["number"]: [file["path"] for file in attempt.get("artefacts") or ()] for attempt in status["attempts"]
    }
    assert paths_by_attempt == {1: [], 2: ["/mnt/2"], 3: ["/mnt/3"], 4: ["/mnt/4"], 5: [], 6: []}
