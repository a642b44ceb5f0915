"""The notebook controller on the embedded cluster: job phases, retries, hooks, events and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from argosy.errors import TransientError, UnknownRef
from argosy.features.notebooks.controller import JobHook
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.run_backend import NotebookRunState, RunOutcome
from argosy.gitops.health.assess import assess_by_rule
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import Customizations
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.notebook_controller import (
    BAD,
    FAILED,
    GOOD,
    PASSED,
    RUNNING,
    VANISHED,
    ToldRuns,
    condition,
    job,
    leaping,
    world,
)

pytestmark = pytest.mark.anyio
TRAIN = ResourceKey(*NOTEBOOK_JOB, "default", "train")


def health(live: Manifest, profile: str = "") -> tuple[str, str]:
    chosen = {f"{NOTEBOOK_JOB.group}/{NOTEBOOK_JOB.kind}": profile} if profile else {}
    assessment = assess_by_rule(live, HealthRules(Customizations(profiles=chosen)).find_rule(*NOTEBOOK_JOB), {})
    assert assessment is not None
    return str(assessment.health), assessment.message


def claim(name: str = "models") -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.01)


# -- from start to completion ------------------------------------------------------------------------------------------


async def test_job_phases_only_move_forward(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=RUNNING)) as at:
        phases: list[str] = []
        since = (await cluster.list(NOTEBOOK_JOB)).version

        async def watch() -> None:
            async for event in cluster.watch(NOTEBOOK_JOB, since=since, namespace="default"):
                phase = (event.manifest.get("status") or {}).get("phase", "")
                if not phases or phases[-1] != phase:
                    phases.append(phase)

        watching = asyncio.create_task(watch())
        await at.apply(job())
        await at.becomes(lambda status: status["results"])
        at.runs.otherwise = PASSED
        status = await at.ends()
        await until(lambda: phases[-1:] == ["Succeeded"])
        watching.cancel()
    assert [phase for phase in phases if phase] == ["Initializing", "ValidationRunning", "Succeeded"]
    assert status["message"] == "Validation completed: 1/1 cells succeeded (100.0% success rate)"
    assert (status["observedGeneration"], status["gitCommit"]) == (1, "c0ffee")
    assert condition(status, "Ready")["status"] == condition(status, "Complete")["status"] == "True"


async def test_job_health_is_progressing_while_running_and_degraded_after_failure(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=NotebookRunState("running", GOOD, 2, "train-validation"))) as at:
        await at.apply(job())
        await at.becomes(lambda status: status["results"])
        live = await cluster.get(TRAIN)
        assert live is not None
        assert health(live) == ("Progressing", "Validating notebook (pod: train-validation)")
        assert health(live, "cells") == ("Progressing", "Executing notebook (1 cells completed)")
        at.runs.otherwise = FAILED
        await at.ends()
        live = await cluster.get(TRAIN)
        assert live is not None
        assert health(live) == ("Degraded", "Cell execution failed: ModuleNotFoundError")
        assert health(live, "cells") == ("Degraded", "Failed at cell 1: ModuleNotFoundError")


async def test_invalid_job_spec_fails_without_starting_a_run(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        await at.apply(job(pod={"volumeMounts": [{"name": "gone", "mountPath": "/mnt/x"}]}))
        status = await at.ends()
    problem = "Validation failed: spec.podConfig.volumeMounts[0].name: volume 'gone' not found"
    assert status["message"].startswith(problem)
    assert (condition(status, "Failed")["reason"], at.runs.started) == ("ConfigurationError", [])


async def test_unknown_branch_fails_the_job(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=UnknownRef("there is no branch nope"))) as at:
        await at.apply(job())
        status = await at.ends()
    assert status["message"] == "Validation failed: there is no branch nope"
    assert condition(status, "GitCloned")["status"] == "False"


async def test_transient_errors_are_retried_within_the_same_attempt(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=TransientError("not yet"))) as at:
        await at.apply(job())
        await at.becomes(lambda status: status["phase"] == "ValidationRunning")
        at.runs.otherwise = PASSED
        status = await at.ends()
    assert (status["phase"], len(status["attempts"])) == ("Succeeded", 1)


def claiming() -> Manifest:
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
    return job(pod={"volumes": [volume], "volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}]})


async def test_job_waits_for_its_persistent_volume_claim(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        await at.apply(claiming())
        status = await at.becomes(lambda status: "PersistentVolumeClaim" in status["message"])
        assert (status["phase"], at.runs.started) == ("ValidationRunning", [])
        await cluster.create(claim())
        assert (await at.ends())["phase"] == "Succeeded"


async def test_job_fails_at_its_timeout_if_the_claim_is_still_missing(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, clock):
        await at.apply(claiming())
        await at.becomes(lambda status: "PersistentVolumeClaim" in status["message"])
        clock.leap(1801.0)
        status = await at.ends()
    assert status["message"].startswith("Validation failed: Waiting for PersistentVolumeClaim models: create it")


# -- retries and re-runs -----------------------------------------------------------------------------------------------


async def test_job_fails_after_three_retries_with_the_documented_health_message(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster, ToldRuns(otherwise=FAILED)) as (at, clock):
        await at.apply(job(retryPolicy={"on": "any"}))
        for retry, minutes in ((1, 1), (2, 2), (3, 4)):
            status = await at.becomes(lambda status, retry=retry: status["retryCount"] == retry)
            assert status["phase"] == "ValidationRunning"
            assert status["message"] == f"Cell execution failed: ModuleNotFoundError; retry {retry}/3 in {minutes}m"
            clock.leap(60.0 * minutes)
        await at.ends()
        live = await cluster.get(TRAIN)
    assert live is not None
    assert health(live) == ("Degraded", "Cell execution failed: ModuleNotFoundError (retry 3/3)")
    assert [run.attempt for _, run in at.runs.started] == [1, 2, 3, 4]
    assert len(at.runs.alive) == 1  # the last run is kept for inspection


async def test_vanished_run_is_retried_under_the_default_policy(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns({1: VANISHED})) as at:
        await at.apply(job(retryPolicy={"backoff": "100ms"}))
        status = await at.ends()
    assert (status["phase"], status["retryCount"]) == ("Succeeded", 1)
    assert [attempt["phase"] for attempt in status["attempts"]] == ["Failed", "Succeeded"]


async def test_hanging_run_is_stopped_at_the_timeout(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster, ToldRuns(otherwise=RUNNING)) as (at, clock):
        await at.apply(job(timeout="10m"))
        await at.becomes(lambda status: status["attempts"][-1]["startTime"])
        clock.leap(620.0)
        status = await at.ends()
        await until(lambda: not at.runs.alive)
    assert status["message"] == "Validation failed: not done within 10m"
    assert condition(status, "Failed")["reason"] == "ValidationTimeout"


async def test_spec_change_cancels_the_run_and_starts_a_new_one_also_after_completion(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=RUNNING)) as at:
        await at.apply(job())
        await at.becomes(lambda status: status["results"])
        at.runs.otherwise = PASSED
        for generation, ref in ((2, "v2"), (3, "v3")):
            await at.patch({"spec": {"notebook": {"git": {"ref": ref}}}})
            status = await at.becomes(
                lambda status, expected=generation: (
                    status["observedGeneration"] == expected and status["completionTime"]
                )
            )
            assert status["phase"] == "Succeeded"
    assert [(run.generation, run.attempt) for _, run in at.runs.started][-1] == (3, len(at.runs.started))
    assert at.runs.ended[0] == ("train", None)
    assert [attempt["phase"] for attempt in status["attempts"]][:2] == ["Cancelled", "Succeeded"]
    assert {run.generation for _, run in at.runs.alive} == {3}


async def test_new_value_of_the_re_run_annotation_starts_another_run(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        await at.apply(job())
        first = await at.ends()
        await at.patch({"metadata": {"annotations": {"mlops.dev/re-run": "2026-01-01T00:00:00Z"}}})
        status = await at.becomes(lambda status: status["observedReRun"] and status["completionTime"])
    assert (len(first["attempts"]), [attempt["number"] for attempt in status["attempts"]]) == (1, [1, 2])


async def test_deleting_a_job_stops_its_run(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=RUNNING)) as at:
        await at.apply(job())
        await at.becomes(lambda status: status["results"])
        await at.delete()
        await until(lambda: not at.runs.alive)
    assert at.runs.ended == [("train", None)]


async def test_result_of_the_original_operator_is_kept_and_calls_no_hooks(cluster: EmbeddedCluster) -> None:
    acted: list[str] = []

    async def act(notebook_job: NotebookJob, live: Manifest, context: ControllerContext) -> None:
        acted.append(notebook_job.name)

    async with world(cluster, result_hooks=[act]) as at:
        pass
    await at.apply(job())
    old = {"phase": "Succeeded", "completionTime": "2026-01-01T00:00:00Z", "message": "done"}
    await cluster.patch(TRAIN, {"status": old}, subresource="status")
    async with world(cluster, result_hooks=[act]) as at:
        await at.apply(job("other"))
        await at.ends("other")
        await until(lambda: acted)
        assert await at.status() == old
    assert set(acted) == {"other"}


# -- restart of the controller -----------------------------------------------------------------------------------------


async def test_restarted_controller_continues_the_current_run(cluster: EmbeddedCluster) -> None:
    runs = ToldRuns(otherwise=RUNNING)
    async with world(cluster, runs) as at:
        await at.apply(job())
        await at.becomes(lambda status: status["results"])
    runs.otherwise = PASSED
    async with world(cluster, runs) as at:
        status = await at.ends()
    assert (len(runs.started), len(status["attempts"])) == (1, 1)


async def test_run_lost_during_a_controller_restart_is_retried(cluster: EmbeddedCluster) -> None:
    runs = ToldRuns({1: RUNNING})
    async with world(cluster, runs) as at:
        await at.apply(job(retryPolicy={"backoff": "50ms"}))
        await at.becomes(lambda status: status["results"])
    runs.alive.clear()
    async with world(cluster, runs) as at:
        status = await at.ends()
    assert (status["phase"], [attempt["phase"] for attempt in status["attempts"]]) == (
        "Succeeded",
        ["Failed", "Succeeded"],
    )


# -- start and result hooks --------------------------------------------------------------------------------------------


def follower(calls: list[tuple[str, Any]], error: Exception | None = None) -> JobHook:
    async def act(notebook_job: NotebookJob, live: Manifest, context: ControllerContext) -> None:
        calls.append((notebook_job.name, (live.get("status") or {}).get("phase")))
        if error is not None and len(calls) < 3:
            raise error

    return act


async def test_result_is_stored_before_result_hooks_are_called(cluster: EmbeddedCluster) -> None:
    starts: list[tuple[str, Any]] = []
    done: list[tuple[str, Any]] = []
    async with world(cluster, start_hooks=[follower(starts)], result_hooks=[follower(done)]) as at:
        await at.apply(job())
        await at.ends()
        await until(lambda: done)
    assert starts == [("train", None)]
    assert {phase for _, phase in done} == {"Succeeded"}


async def test_failing_hook_is_retried_and_does_not_block_other_hooks(cluster: EmbeddedCluster) -> None:
    failing: list[tuple[str, Any]] = []
    other: list[tuple[str, Any]] = []
    acting = [follower(failing, TransientError("not now")), follower(other)]
    async with world(cluster, result_hooks=acting) as at:
        await at.apply(job())
        await until(lambda: len(failing) >= 3)
    assert other


# -- events and redaction ----------------------------------------------------------------------------------------------


async def test_failure_event_is_sent_once_with_details(cluster: EmbeddedCluster) -> None:
    runs = ToldRuns(otherwise=FAILED)
    manifest = job(annotations={"argocd.argoproj.io/sync-wave": "3"})
    manifest["metadata"]["labels"] = {"app.kubernetes.io/part-of": "pipeline"}
    async with world(cluster, runs) as at:
        await at.apply(manifest)
        await at.ends()
        await at.told("ValidationStarted", "ValidationFailed")
    async with world(cluster, runs) as at:  # a restarted controller sends no event twice
        await at.apply(job("other"))
        await at.ends("other")
        events = await at.told("ValidationFailed")
    job_events = [event for event in events if event["involvedObject"]["name"] == "train"]
    assert sorted(event["reason"] for event in job_events) == ["ValidationFailed", "ValidationStarted"]
    (failure,) = [event for event in job_events if event["reason"] == "ValidationFailed"]
    assert failure["type"] == "Warning"
    assert failure["metadata"]["labels"]["mlops.dev/notification-type"] == "validation-failure"
    assert (failure["involvedObject"]["kind"], failure["involvedObject"]["apiVersion"]) == (
        "NotebookValidationJob", "mlops.mlops.dev/v1alpha1",
    )  # fmt: skip
    for line in ("Message: Cell execution failed: ModuleNotFoundError", "Sync Wave: 3", "Application: pipeline"):
        assert line in failure["message"].splitlines()


async def test_retries_are_reported_as_events(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns({1: VANISHED})) as at:
        await at.apply(job(retryPolicy={"backoff": "100ms"}))
        await at.ends()
        events = await at.told("ValidationRetrying", "ValidationSucceeded")
    assert sum(event["reason"] == "ValidationStarted" for event in events) == 2


async def test_misplaced_volumes_are_reported_as_a_spec_warning_event(cluster: EmbeddedCluster) -> None:
    volume = {"name": "models", "persistentVolumeClaim": {"claimName": "c"}}
    async with world(cluster) as at:
        await cluster.create(claim("c"))
        await at.apply(job(volumes=[volume], pod={"volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}]}))
        status = await at.ends()
        (event,) = [job_event for job_event in await at.told("SpecWarning") if job_event["reason"] == "SpecWarning"]
    assert status["phase"] == "Succeeded"
    assert "move it to spec.podConfig.volumes" in event["message"]
    assert at.runs.jobs[0].map_claims() == {"models": "c"}


async def test_secrets_printed_by_a_notebook_are_redacted_in_status(cluster: EmbeddedCluster) -> None:
    cells = ({**BAD[1], "output": "AWS_SECRET_ACCESS_KEY=abc", "errorMessage": "E: https://me:pw@example.org"},)
    async with world(
        cluster, ToldRuns(otherwise=NotebookRunState("ended", cells, 1, outcome=RunOutcome(False, "x", "y")))
    ) as at:
        await at.apply(job())
        status = await at.ends()
    assert "abc" not in status["results"][0]["output"]
    assert "pw" not in status["results"][0]["errorMessage"]


async def test_values_of_job_credentials_are_redacted_in_status_and_events(cluster: EmbeddedCluster) -> None:
    values = {"token": "hunter22-and-more", "pin": "1234", "key": "line-one-of-it\nline-two-of-it"}
    metadata = {"name": "keys", "namespace": "default"}
    await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values})
    leaked_text = "it is hunter22-and-more, 1234 and line-two-of-it"
    cells = ({**BAD[1], "output": leaked_text, "errorMessage": leaked_text, "errorName": "hunter22-and-more"},)
    outcome = RunOutcome(
        False, leaked_text, "validation_findings", results={"findings": [{"cell": 0, "message": leaked_text}]}
    )
    async with world(cluster, ToldRuns(otherwise=NotebookRunState("ended", cells, 1, outcome=outcome))) as at:
        await at.apply(job(pod={"credentials": ["keys", "not-there"]}))
        status = await at.ends()
        events = await at.told("ValidationFailed")
    assert status["results"][0]["output"] == "it is [REDACTED], 1234 and [REDACTED]"
    assert status["results"][0]["errorType"] == "[REDACTED]"
    assert "hunter22" not in str((status, events))
    assert "line-two" not in str((status, events))


# -- metrics -----------------------------------------------------------------------------------------------------------


async def test_metrics_of_the_original_operator_are_recorded(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns({1: FAILED})) as at:
        for name in ("one", "two"):
            await at.apply(job(name))
            await at.ends(name)
        at.runs.answers[1] = RUNNING
        for name in ("three", "four"):
            await at.apply(job(name))
            await at.becomes(lambda status: status["results"], name)
        text = at.controller.metrics.render()
    for line in (
        'notebookvalidationjob_validations_total{namespace="default",status="failed"} 2',
        'notebookvalidationjob_pod_creations_total{namespace="default",result="success"} 4',
        'notebookvalidationjob_active_pods{namespace="default",phase="ValidationRunning"} 2',
        'notebookvalidationjob_active_pods{namespace="default",phase="Failed"} 2',
        'notebookvalidationjob_git_clone_duration_seconds_count{auth_type="none",namespace="default"} 4',
        'notebook_validation_total{phase="Failed"} 2',
    ):
        assert line in text.splitlines()
    assert 'reconciliation_duration_seconds_bucket{namespace="default",result="success",le="0.1"}' in text
