"""Runs as Pods: what a Pod asks for, what its end means, and that no run leaves anything. Tests play the kubelet."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.features.notebooks import statuses
from argosy.features.notebooks.notebook_validation_job import read_job
from argosy.features.notebooks.pod_runs import PodRuns, diagnosis, runner_archive
from argosy.features.notebooks.pod_runs.run_state import read_run_state
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


# -- what its end means ------------------------------------------------------------------------------------------------


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


def test_a_notebook_that_passed_is_told_with_its_cells_and_its_commit() -> None:
    cloned = {"name": "git-clone", "state": {"terminated": {"exitCode": 0, "message": COMMIT}}}
    run_state = stands({**ended(0, pack_results(PASSED)), "initContainerStatuses": [cloned]})
    assert (run_state.state, run_state.revision, run_state.pod) == ("ended", COMMIT, "train-validation")
    assert run_state.outcome and run_state.outcome.passed
    assert run_state.outcome.message == "Validation completed: 1/1 cells succeeded (100.0% success rate)"
    assert run_state.cells[0] == {"cell": 0, "type": "code", "status": "Success", "seconds": 0.5, "output": "42"}


def test_a_notebook_that_failed_is_told_with_its_cells() -> None:
    """The original reads results only of Pods that succeeded, so that these never are."""
    run_state = stands(ended(1, pack_results(FAILED)))
    assert run_state.outcome and not run_state.outcome.passed and not run_state.outcome.retriable
    assert run_state.outcome.category == "notebook_execution_failed"
    assert (run_state.cells[0]["status"], run_state.cells[0]["errorName"]) == ("Failure", "NameError")


def test_cells_are_whole_though_the_last_report_was_lost() -> None:
    event = {"event": "cell", "cell": 0, "type": "code", "status": "Success", "seconds": 1.0, "output": ""}
    two = [*PASSED["cells"], {**PASSED["cells"][0], "cell_index": 1}]
    run_state = stands(ended(0, pack_results({**PASSED, "cells": two})), {"data": {"events.jsonl": json.dumps(event)}})
    assert [cell["cell"] for cell in run_state.cells] == [0, 1]


@pytest.mark.parametrize("said", ["", "Completed", "{", '{"status": "unknown"}'])
def test_a_pod_that_ends_well_and_tells_nothing_has_not_passed(said: str) -> None:
    """In the original it has."""
    run_state = stands(ended(0, said))
    assert run_state.outcome and not run_state.outcome.passed and run_state.outcome.retriable


@pytest.mark.parametrize("forged", [
    {"statistics": {"succeeded_cells": "many"}}, {"statistics": 7}, {"cells": 7}, {"comparison": "matched"},
    {"comparison": {"strategy": "guess", "result": "matched"}}, {"findings": [{"severity": "dire"}]}, {"findings": 1},
    {"cells": [{"cell_index": -1, "status": "succeeded"}]}, {"cells": [{"cell_index": 0, "seconds": "long"}]},
])  # fmt: skip
def test_results_of_another_shape_are_none(forged: dict[str, Any]) -> None:
    run_state = stands(ended(0, json.dumps({"status": "succeeded", **forged})))
    assert run_state.outcome is not None
    assert not run_state.outcome.passed
    assert run_state.cells == ()


def test_a_result_that_the_exit_code_denies_does_not_count() -> None:
    run_state = stands(ended(1, pack_results(PASSED)))
    assert run_state.outcome and not run_state.outcome.passed


def test_results_that_were_cut_are_taken_whole_from_the_config_map() -> None:
    full = {**FAILED, "timestamp": "t", "findings": [{"cell": 0}]}
    notes = {"data": {"results.json": json.dumps(full)}}
    run_state = stands(ended(1, json.dumps({**FAILED, "timestamp": "t", "cells": [], "cut": True})), notes)
    assert run_state.outcome and run_state.outcome.results["findings"] == [{"cell": 0}]
    other = {"data": {"results.json": json.dumps({**PASSED, "timestamp": "t"})}}
    state = stands(ended(1, json.dumps({**FAILED, "timestamp": "t", "cells": [], "cut": True})), other)
    assert state.outcome and not state.outcome.passed


def test_cells_are_told_while_the_notebook_runs() -> None:
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
def test_what_a_pods_end_means(status: dict[str, Any], category: str, again: bool, words: str) -> None:
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
def test_a_pod_that_does_not_begin_is_waited_for_as_long_as_it_makes_sense(
    status: dict[str, Any], state: str, again: bool | None
) -> None:
    run_state = stands(status)
    assert run_state.state == state
    assert (run_state.outcome.retriable if run_state.outcome else None) is again


def test_a_pod_that_no_node_takes_says_so_and_is_given_up_after_the_jobs_time() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    status = {**waiting("", seconds=60), "conditions": [condition], "containerStatuses": []}
    assert stands(status).message == "Unschedulable: 0/3 nodes"
    run_state = stands(status, timeout="30s")
    assert run_state.outcome and run_state.outcome.retriable and "0/3 nodes" in run_state.outcome.message


def test_a_secret_in_what_git_said_is_not_repeated() -> None:
    run_state = stands(ended(12, "fatal: unable to access 'https://robot:s3cret@example.org/a.git'", "git-clone"))
    assert run_state.outcome and "s3cret" not in run_state.outcome.message


def test_every_category_of_ours_has_a_reason_in_the_status() -> None:
    for category in (diagnosis.GIT_REFUSED, diagnosis.GIT_FAILED, "environment_setup_failed", "notebook_timeout"):
        assert statuses.choose_reason(diagnosis.RunOutcome(False, "", category)) != "Failed"


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


async def test_a_job_becomes_a_pod_and_the_pods_end_its_status(cluster: EmbeddedCluster) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        live = await appears(at, POD)
        shared = await at.cluster.get(ResourceKey("", "ConfigMap", "default", runner_archive.build_config_map_name()))
        assert shared and [reference["name"] for reference in shared["metadata"]["ownerReferences"]] == ["train"]
        assert json.loads((await appears(at, NOTES))["data"]["errand.json"])["report"] == "train-validation"
        assert live["metadata"]["ownerReferences"][0]["controller"] is True
        await kubelet(cluster, {**ended(1, pack_results(FAILED))})
        status = await at.ends()
        assert (status["phase"], status["validationPodName"]) == ("Failed", "train-validation")
        assert status["message"] == "Cell execution failed: NameError: name 'x'"
        assert status["results"][0]["status"] == "Failure"


async def test_a_pod_that_is_lost_is_made_again_and_its_notes_are_new(cluster: EmbeddedCluster) -> None:
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


async def test_an_operator_that_is_killed_takes_up_the_pod_that_runs_and_begins_no_other(
    cluster: EmbeddedCluster,
) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        first = await appears(at, POD)
        running = {"name": "validator", "state": {"running": {"startedAt": "2026-08-01T00:00:00Z"}}}
        await kubelet(cluster, {"phase": "Running", "containerStatuses": [running]})
        await at.becomes(lambda status: status["attempts"][0]["startTime"])
    await kubelet(cluster, ended(0, pack_results(PASSED)))  # while nobody is there
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        status = await at.ends()
        assert (status["phase"], len(status["attempts"])) == ("Succeeded", 1)
        assert (await appears(at, POD))["metadata"]["uid"] == first["metadata"]["uid"]


async def test_a_pod_that_somebody_deletes_is_an_attempt_that_was_lost(cluster: EmbeddedCluster) -> None:
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


async def test_a_long_notebook_counts_all_its_cells_though_its_pod_can_tell_of_few(cluster: EmbeddedCluster) -> None:
    many = {**PASSED, "cells": [], "cut": True, "statistics": {"succeeded_cells": 900, "success_rate": 100.0}}
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        await appears(at, POD)
        await kubelet(cluster, ended(0, pack_results(many)))
        assert (await at.ends())["message"] == "Validation completed: 900/900 cells succeeded (100.0% success rate)"


async def test_a_pod_that_is_given_up_does_not_begin_later(cluster: EmbeddedCluster, until: Any) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        await appears(at, POD)
        await kubelet(cluster, waiting("InvalidImageName"))
        status = await at.ends()
        assert (status["phase"], status.get("retryCount")) == ("Failed", None)

        async def gone() -> bool:
            return await cluster.get(POD) is None

        await until(gone)


async def test_a_pod_is_not_looked_at_more_often_than_an_api_server_can_bear(cluster: EmbeddedCluster) -> None:
    pod_runs, context = runs(cluster)
    one = read_job({**job(), "metadata": {**job()["metadata"], "uid": "1"}})
    await pod_runs.start(one, RUN, context)
    first = await pod_runs.observe(one, RUN, context)
    await cluster.delete(POD)
    assert await pod_runs.observe(one, RUN, context) == first
    assert (await PodRuns().observe(one, RUN, context)).state == "absent"


async def test_a_new_specification_ends_the_pod_of_the_old_one(cluster: EmbeddedCluster) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        first = await appears(at, POD, "1-1")
        await at.patch({"spec": {"timeout": "10m"}})
        second = await appears(at, POD, "2-2")
        assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_a_job_that_is_deleted_leaves_neither_pod_nor_config_map(cluster: EmbeddedCluster, until: Any) -> None:
    async with world(cluster, PodRuns(poll_interval=0.0)) as at:  # type: ignore[arg-type]
        await at.apply(job())
        await appears(at, POD)
        await at.delete()

        async def gone() -> bool:
            return await cluster.get(POD) is None and await cluster.get(NOTES) is None

        await until(gone)


async def test_a_pod_of_somebody_else_is_left_alone_and_told(cluster: EmbeddedCluster) -> None:
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


async def test_to_start_twice_is_to_start_once_and_jobs_share_the_runner(cluster: EmbeddedCluster) -> None:
    pod_runs, context = runs(cluster)
    for name in ("one", "two"):
        manifest = job(name)
        manifest["metadata"] |= {"uid": f"uid-{name}", "generation": 1}
        for _ in range(2):
            await pod_runs.start(read_job(manifest), RunKey(f"uid-{name}", 1, 1), context)
    maps = [config_map["metadata"]["name"] for config_map in (await cluster.list(GroupKind("", "ConfigMap"))).items]
    assert sorted(name for name in maps if "kube-root-ca" not in name) == [
        runner_archive.build_config_map_name(), "one-validation", "two-validation"
    ]  # fmt: skip
    shared = await cluster.get(ResourceKey("", "ConfigMap", "default", runner_archive.build_config_map_name()))
    assert shared and [reference["name"] for reference in shared["metadata"]["ownerReferences"]] == ["one", "two"]


async def test_git_is_told_whom_argo_cd_believes(cluster: EmbeddedCluster) -> None:
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
