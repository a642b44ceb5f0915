"""Notebook runs as Pods: the run state read from a Pod's status, retries and cleanup.
The tests act as the kubelet."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.features.notebooks import notebook_validation_job_status
from argosy.features.notebooks.notebook_validation_job_parser import read_job
from argosy.features.notebooks.pod_runs import PodRuns, diagnosis, runner_archive_config_map
from argosy.features.notebooks.pod_runs.run_state_from_pod import read_run_state
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey
from argosy.features.notebooks.runner.termination_message import pack_results
from argosy.kube.controller import ControllerContext, InformerCache
from argosy.kube.controller.clock import SystemClock
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.notebook_controller import RUN, World, build_run_pod, job, world

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
COMMIT = "c0ffee" * 6 + "c0ff"
POD = ResourceKey("", "Pod", "default", "train-validation")
NOTES = ResourceKey("", "ConfigMap", "default", "train-validation")
PASSED: dict[str, Any] = {
    "status": "succeeded", "error": "", "error_category": "", "exit_code": 0,
    "cells": [{"cell_index": 0, "cell_type": "code", "status": "succeeded", "seconds": 0.5, "output": "42"}],
    "statistics": {"total_cells": 1, "code_cells": 1, "succeeded_cells": 1, "failed_cells": 0, "success_rate": 100.0},
}  # fmt: skip
FAILED = {
    **PASSED, "status": "failed", "error": "cell 0: NameError: name 'x'", "exit_code": 1,
    "error_category": "notebook_execution_failed",
    "cells": [{"cell_index": 0, "cell_type": "code", "status": "failed", "error": "NameError: name 'x'"}],
}  # fmt: skip


# -- run state from the Pod status -----------------------------------------------------------------------------------


def ended(code: int, message: str = "", name: str = "validator", reason: str = "") -> dict[str, Any]:
    termination = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "message": message}
    field = "containerStatuses" if name == "validator" else "initContainerStatuses"
    return {"phase": "Failed" if code else "Succeeded", field: [{"name": name, "state": {"terminated": termination}}]}


def waiting(reason: str, message: str = "", seconds: float = 5.0) -> dict[str, Any]:
    since = (NOW - timedelta(seconds=seconds)).isoformat()
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "startTime": since, "containerStatuses": [{"name": "validator", "state": state}]}


def stands(status: dict[str, Any], notes: Any = None, **spec: Any) -> NotebookRunState:
    manifest = build_run_pod(pod={"resources": {"limits": {"memory": "4Gi"}}}, **spec)
    return read_run_state(read_job(job(**spec)), {**manifest, "status": status}, notes, NOW)


def test_succeeded_pod_reports_cells_and_commit() -> None:
    cloned = {"name": "git-clone", "state": {"terminated": {"exitCode": 0, "message": COMMIT}}}
    run_state = stands({**ended(0, pack_results(PASSED)), "initContainerStatuses": [cloned]})
    assert (run_state.state, run_state.revision, run_state.pod) == ("ended", COMMIT, "train-validation")
    assert run_state.outcome and run_state.outcome.passed
    assert run_state.outcome.message == "Validation completed: 1/1 cells succeeded (100.0% success rate)"
    assert run_state.cells[0] == {"cell": 0, "type": "code", "status": "Success", "seconds": 0.5, "output": "42"}


def test_failed_pod_reports_its_cells() -> None:
    """The original operator reads results only from succeeded Pods, so it never reports these cells."""
    run_state = stands(ended(1, pack_results(FAILED)))
    assert run_state.outcome and not run_state.outcome.passed and not run_state.outcome.retriable
    assert run_state.outcome.category == "notebook_execution_failed"
    assert (run_state.cells[0]["status"], run_state.cells[0]["errorName"]) == ("Failure", "NameError")


def test_cells_are_complete_without_the_last_progress_report() -> None:
    event = {"event": "cell", "cell": 0, "type": "code", "status": "Success", "seconds": 1.0, "output": ""}
    two = [*PASSED["cells"], {**PASSED["cells"][0], "cell_index": 1}]
    run_state = stands(ended(0, pack_results({**PASSED, "cells": two})), {"data": {"events.jsonl": json.dumps(event)}})
    assert [cell["cell"] for cell in run_state.cells] == [0, 1]


@pytest.mark.parametrize("said", ["", "Completed", "{", '{"status": "unknown"}'])
def test_successful_exit_without_results_is_not_a_pass(said: str) -> None:
    """The original operator counts it as passed."""
    run_state = stands(ended(0, said))
    assert run_state.outcome and not run_state.outcome.passed and run_state.outcome.retriable


@pytest.mark.parametrize("forged", [
    {"statistics": {"succeeded_cells": "many"}}, {"statistics": 7}, {"cells": 7}, {"comparison": "matched"},
    {"comparison": {"strategy": "guess", "result": "matched"}}, {"findings": [{"severity": "dire"}]}, {"findings": 1},
    {"cells": [{"cell_index": -1, "status": "succeeded"}]}, {"cells": [{"cell_index": 0, "seconds": "long"}]},
])  # fmt: skip
def test_malformed_results_are_ignored(forged: dict[str, Any]) -> None:
    run_state = stands(ended(0, json.dumps({"status": "succeeded", **forged})))
    assert run_state.outcome is not None
    assert not run_state.outcome.passed
    assert run_state.cells == ()


def test_success_result_with_failing_exit_code_is_not_a_pass() -> None:
    run_state = stands(ended(1, pack_results(PASSED)))
    assert run_state.outcome and not run_state.outcome.passed


def test_truncated_results_are_completed_from_the_configmap() -> None:
    full = {**FAILED, "timestamp": "t", "findings": [{"cell": 0}]}
    notes = {"data": {"results.json": json.dumps(full)}}
    run_state = stands(ended(1, json.dumps({**FAILED, "timestamp": "t", "cells": [], "cut": True})), notes)
    assert run_state.outcome and run_state.outcome.results["findings"] == [{"cell": 0}]
    other = {"data": {"results.json": json.dumps({**PASSED, "timestamp": "t"})}}
    state = stands(ended(1, json.dumps({**FAILED, "timestamp": "t", "cells": [], "cut": True})), other)
    assert state.outcome and not state.outcome.passed


def test_finished_cells_are_reported_while_the_notebook_runs() -> None:
    cell = {"event": "cell", "cell": 0, "type": "code", "status": "Success", "seconds": 1.0, "output": ""}
    lines = [{"event": "started", "cells": 2, "code": 2}, cell]
    notes = {"data": {"events.jsonl": "\n".join(map(json.dumps, lines))}}
    status = {"phase": "Running", "containerStatuses": [{"name": "validator", "state": {"running": {"startedAt": ""}}}]}
    run_state = stands(status, notes)
    assert (run_state.state, run_state.cell_count, len(run_state.cells)) == ("running", 2, 1)
    assert stands(status, {"data": {"events.jsonl": '{"event": "started"}\nnonsense'}}).state == "running"


@pytest.mark.parametrize(("status", "category", "again", "words"), [
    (ended(137, reason="OOMKilled"), "notebook_execution_failed", False, "more than the memory limit of 4Gi"),
    (ended(137), "infrastructure_error", True, "was killed (exit code 137)"),
    (ended(143), "infrastructure_error", True, "was killed (exit code 143)"),
    (ended(127), "environment_setup_failed", False, "must contain python3"),
    (ended(128, "exec failed", reason="StartError"), "environment_setup_failed", False, "contain python3: exec failed"),
    (ended(10, "fatal: Authentication failed", "git-clone"), "git_authentication_failed", False, "git-clone: fatal"),
    (ended(11, "couldn't find remote ref x", "git-clone"), "git_clone_failed", False, "remote ref x"),
    (ended(12, "Could not resolve host", "git-clone"), "git_clone_failed", True, "Could not resolve"),
    (ended(13, "there is no file a", "golden-git-clone"), "git_clone_failed", False, "golden-git-clone: there is no"),
    (ended(127, "", "git-clone"), "environment_setup_failed", False, "must contain git and sh"),
    (ended(3, "no data", "prepare"), "environment_setup_failed", False, "init container prepare exited with code 3"),
    ({"phase": "Failed", "reason": "DeadlineExceeded"}, "notebook_timeout", False, "did not finish within"),
    ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "infrastructure_error", True, "low on"),
    ({"phase": "Failed", "reason": "NodeLost"}, "infrastructure_error", True, "NodeLost"),
    ({"phase": "Failed"}, "infrastructure_error", True, "terminated from outside"),
])  # fmt: skip
def test_pod_failure_maps_to_category_and_retry(status: dict[str, Any], category: str, again: bool, words: str) -> None:
    run_state = stands(status)
    assert run_state.outcome and not run_state.outcome.passed
    assert (run_state.outcome.category, run_state.outcome.retriable) == (category, again)
    assert words in run_state.outcome.message


@pytest.mark.parametrize(("status", "state", "again"), [
    (waiting("ContainerCreating"), "waiting", None),
    (waiting("ErrImagePull", "not found"), "waiting", None),
    (waiting("ImagePullBackOff", "not found", 300), "ended", True),
    (waiting("InvalidImageName"), "ended", False),
    (waiting("CreateContainerConfigError", 'secret "aws" not found'), "waiting", None),
    (waiting("CreateContainerConfigError", 'secret "aws" not found', 300), "ended", True),
    (waiting("CreateContainerConfigError", "image will run as root"), "ended", False),
    (waiting("RunContainerError", "unable to validate against any SCC"), "ended", False),
    ({"phase": "Pending"}, "waiting", None),
])  # fmt: skip
def test_waiting_reason_decides_between_wait_retry_and_failure(
    status: dict[str, Any], state: str, again: bool | None
) -> None:
    run_state = stands(status)
    assert run_state.state == state
    assert (run_state.outcome.retriable if run_state.outcome else None) is again


def test_unschedulable_pod_is_reported_and_given_up_after_the_timeout() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    status = {**waiting("", seconds=60), "conditions": [condition], "containerStatuses": []}
    assert stands(status).message == "Unschedulable: 0/3 nodes"
    run_state = stands(status, timeout="30s")
    assert run_state.outcome and run_state.outcome.retriable and "0/3 nodes" in run_state.outcome.message


def test_git_error_message_does_not_contain_the_password() -> None:
    run_state = stands(ended(12, "fatal: unable to access 'https://robot:s3cret@example.org/a.git'", "git-clone"))
    assert run_state.outcome and "s3cret" not in run_state.outcome.message


def test_every_failure_category_has_a_specific_status_reason() -> None:
    for category in (diagnosis.GIT_REFUSED, diagnosis.GIT_FAILED, "environment_setup_failed", "notebook_timeout"):
        assert notebook_validation_job_status.choose_reason(diagnosis.RunOutcome(False, "", category)) != "Failed"


# -- on a cluster ------------------------------------------------------------------------------------------------------


async def kubelet(cluster: EmbeddedCluster, status: dict[str, Any]) -> None:
    await cluster.patch(POD, {"status": status}, subresource="status")


async def appears(at: World, key: ResourceKey, mark: str = "") -> Manifest:
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            live = await at.cluster.get(key)
            if live is not None and (live["metadata"].get("annotations") or {}).get("mlops.dev/run", "").endswith(mark):
                return live
            await asyncio.sleep(0.01)


def runs(cluster: EmbeddedCluster) -> tuple[PodRuns, ControllerContext]:
    return PodRuns(), ControllerContext(cluster, InformerCache(), SystemClock())


async def test_job_creates_a_pod_and_takes_its_result(cluster: EmbeddedCluster) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        live = await appears(at, POD)
        shared = await at.cluster.get(
            ResourceKey("", "ConfigMap", "default", runner_archive_config_map.build_config_map_name())
        )
        assert shared and [reference["name"] for reference in shared["metadata"]["ownerReferences"]] == ["train"]
        assert json.loads((await appears(at, NOTES))["data"]["errand.json"])["report"] == "train-validation"
        assert live["metadata"]["ownerReferences"][0]["controller"] is True
        await kubelet(cluster, {**ended(1, pack_results(FAILED))})
        status = await at.ends()
        assert (status["phase"], status["validationPodName"]) == ("Failed", "train-validation")
        assert status["message"] == "Cell execution failed: NameError: name 'x'"
        assert status["results"][0]["status"] == "Failure"


async def test_evicted_pod_is_recreated_with_a_fresh_configmap(cluster: EmbeddedCluster) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job(retryPolicy={"backoff": "10ms"}))
        first = await appears(at, POD, "1-1")
        await cluster.patch(NOTES, {"data": {"events.jsonl": "old"}})
        await kubelet(cluster, {"phase": "Failed", "reason": "Evicted", "message": "low on memory"})
        second = await appears(at, POD, "1-2")
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        assert "events.jsonl" not in (await appears(at, NOTES, "1-2"))["data"]
        await kubelet(cluster, ended(0, pack_results(PASSED)))
        status = await at.ends()
        assert (status["phase"], status["retryCount"], len(status["attempts"])) == ("Succeeded", 1, 2)


async def test_restarted_controller_resumes_the_running_pod(
    cluster: EmbeddedCluster,
) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        first = await appears(at, POD)
        running = {"name": "validator", "state": {"running": {"startedAt": "2026-08-01T00:00:00Z"}}}
        await kubelet(cluster, {"phase": "Running", "containerStatuses": [running]})
        await at.becomes(lambda status: status["attempts"][0]["startTime"])
    await kubelet(cluster, ended(0, pack_results(PASSED)))  # while no controller runs
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        status = await at.ends()
        assert (status["phase"], len(status["attempts"])) == ("Succeeded", 1)
        assert (await appears(at, POD))["metadata"]["uid"] == first["metadata"]["uid"]


async def test_deleted_pod_is_retried(cluster: EmbeddedCluster) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job(retryPolicy={"backoff": "10ms"}))
        await appears(at, POD, "1-1")
        running = {"name": "validator", "state": {"running": {"startedAt": "2026-08-01T00:00:00Z"}}}
        await kubelet(cluster, {"phase": "Running", "containerStatuses": [running]})
        await at.becomes(lambda status: status["attempts"][0]["startTime"])
        await cluster.delete(POD)
        await appears(at, POD, "1-2")
        await kubelet(cluster, ended(0, pack_results(PASSED)))
        status = await at.ends()
        assert (status["phase"], status["retryCount"]) == ("Succeeded", 1)


async def test_truncated_results_keep_the_total_cell_count(cluster: EmbeddedCluster) -> None:
    many = {**PASSED, "cells": [], "cut": True, "statistics": {"succeeded_cells": 900, "success_rate": 100.0}}
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        await appears(at, POD)
        await kubelet(cluster, ended(0, pack_results(many)))
        assert (await at.ends())["message"] == "Validation completed: 900/900 cells succeeded (100.0% success rate)"


async def test_pod_with_a_permanent_error_is_deleted(cluster: EmbeddedCluster, until: Any) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        await appears(at, POD)
        await kubelet(cluster, waiting("InvalidImageName"))
        status = await at.ends()
        assert (status["phase"], status.get("retryCount")) == ("Failed", None)

        async def gone() -> bool:
            return await cluster.get(POD) is None

        await until(gone)


async def test_pod_observation_is_cached_for_the_poll_interval(cluster: EmbeddedCluster) -> None:
    pod_runs, context = runs(cluster)
    one = read_job({**job(), "metadata": {**job()["metadata"], "uid": "1"}})
    await pod_runs.start(one, RUN, context)
    first = await pod_runs.observe(one, RUN, context)
    await cluster.delete(POD)
    assert await pod_runs.observe(one, RUN, context) == first
    assert (await PodRuns().observe(one, RUN, context)).state == "absent"


async def test_spec_change_replaces_the_pod(cluster: EmbeddedCluster) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        first = await appears(at, POD, "1-1")
        await at.patch({"spec": {"timeout": "10m"}})
        second = await appears(at, POD, "2-2")
        assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_deleted_job_removes_its_pod_and_configmap(cluster: EmbeddedCluster, until: Any) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        await appears(at, POD)
        await at.delete()

        async def gone() -> bool:
            return await cluster.get(POD) is None and await cluster.get(NOTES) is None

        await until(gone)


async def test_foreign_pod_fails_the_job_and_is_not_changed(cluster: EmbeddedCluster) -> None:
    spec = {"containers": [{"name": "a", "image": "a:1"}]}
    other_pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD.name, "namespace": "default"},
        "spec": spec,
    }
    before = await cluster.create(other_pod)
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        status = await at.ends()
        assert status["phase"] == "Failed" and "is not owned by this job" in status["message"]
        await at.delete()
        live = await cluster.get(POD)
        assert live and live["metadata"]["uid"] == before["metadata"]["uid"]


async def test_start_is_idempotent_and_jobs_share_the_runner_configmap(cluster: EmbeddedCluster) -> None:
    pod_runs, context = runs(cluster)
    for name in ("one", "two"):
        manifest = job(name)
        manifest["metadata"] |= {"uid": f"uid-{name}", "generation": 1}
        for _ in range(2):
            await pod_runs.start(read_job(manifest), RunKey(f"uid-{name}", 1, 1), context)
    maps = [config_map["metadata"]["name"] for config_map in (await cluster.list(GroupKind("", "ConfigMap"))).items]
    assert sorted(name for name in maps if "kube-root-ca" not in name) == [
        runner_archive_config_map.build_config_map_name(), "one-validation", "two-validation"
    ]  # fmt: skip
    shared = await cluster.get(
        ResourceKey("", "ConfigMap", "default", runner_archive_config_map.build_config_map_name())
    )
    assert shared and [reference["name"] for reference in shared["metadata"]["ownerReferences"]] == ["one", "two"]


async def test_configmap_has_known_hosts_and_ca_of_the_git_host(cluster: EmbeddedCluster) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    for name, data in (("argocd-ssh-known-hosts-cm", {"ssh_known_hosts": "example.org ssh-ed25519 AAAA"}),
                       ("argocd-tls-certs-cm", {"example.org": "a certificate", "other.org": "another"})):  # fmt: skip
        metadata = {"name": name, "namespace": "argocd"}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    pod_runs, context = runs(cluster)
    await pod_runs.start(read_job({**job(), "metadata": {**job()["metadata"], "uid": "1"}}), RUN, context)
    notes = await cluster.get(NOTES)
    assert notes is not None
    assert notes["data"]["known_hosts"].startswith("example.org")
    assert notes["data"]["ca-example.org.crt"] == "a certificate" and "ca-other.org.crt" not in notes["data"]
