"""Placeholder Pods of local notebook runs, beside the Pod simulators; and their logs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.local_sandbox.component_logs_as_pod_logs import ComponentLogs
from argosy.features.local_sandbox.sandbox import PodLogDispatcher
from argosy.features.notebooks.addon import CRD_NAME
from argosy.features.notebooks.controller import NotebookJobController
from argosy.features.notebooks.image_builds import ImageBuilds
from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.local_runs.placeholder_pods import PlaceholderPodController
from argosy.features.notebooks.model_checks import ClusterModelChecker
from argosy.kube.controller import AddOn
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import make as simulators
from argosy.sandbox.simulators.openshift_gitops import make as operator
from support.deadlines import HANG_SECONDS
from support.notebook_controller import BAD, FAILED, GOOD, PASSED, RUNNING, ToldRuns, World, job
from support.simulators import CORE

pytestmark = pytest.mark.anyio
POD = ResourceKey("", "Pod", "default", "train-validation")
NAME = "train-validation"
NEEDED = ("ArgoCD", "AppProject", "Route", "OperatorGroup", "Subscription", "ClusterServiceVersion")
GOING, PASSES, FAILS = (replace(run_state, pod=NAME) for run_state in (RUNNING, PASSED, FAILED))


@contextlib.asynccontextmanager
async def open_world(cluster: EmbeddedCluster, folder: Path) -> AsyncIterator[World]:
    """A cluster with the notebook controller, the Pod simulators and the GitOps operator."""
    notebook_runs, local = ToldRuns(otherwise=GOING), LocalRuns()
    pods = PlaceholderPodController(local)
    controller = NotebookJobController(notebook_runs, builds=ImageBuilds(), model_checker=ClusterModelChecker())
    notebooks = AddOn("notebooks", controllers=[controller, pods], definitions=[load_definition(CRD_NAME)],
                      background=local.open_backend)  # fmt: skip
    players = simulators(CORE)
    assert players.pod_log_reader is not None
    cluster.plane.subresources.pod_logs = PodLogDispatcher([pods], ComponentLogs(players.pod_log_reader))
    gitops = operator("")
    needed = [crd for crd in gitops.definitions if crd["spec"]["names"]["kind"] in NEEDED]
    addons = [replace(gitops, definitions=needed), players, notebooks]
    async with run_addons(addons, cluster, on_failure=lambda: None, folder=folder):
        yield World(cluster, notebook_runs, controller)


async def becomes(cluster: EmbeddedCluster, is_so: Callable[[Any], Any], key: ResourceKey = POD) -> Any:
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            live = await cluster.get(key)
            with contextlib.suppress(KeyError, TypeError):
                if is_so(live):
                    return live
            await asyncio.sleep(0.01)


def phase(expected: str) -> Callable[[Manifest], bool]:
    return lambda pod: bool(pod["status"]["phase"] == expected)


async def printed(cluster: EmbeddedCluster, **how: Any) -> list[str]:
    return [line async for line in cluster.logs(POD, **how)]


async def test_local_run_has_a_placeholder_pod_with_status_and_log(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with open_world(cluster, tmp_path) as at:
        job_manifest = await at.apply(job())
        pod = await becomes(cluster, phase("Running"))
        assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "validation-pod"
        assert pod["metadata"]["labels"]["notebookvalidationjob"] == "train"
        assert [reference["uid"] for reference in pod["metadata"]["ownerReferences"]] == [
            job_manifest["metadata"]["uid"]
        ]
        assert pod["metadata"]["annotations"]["sandbox.argosy.dev/simulated"] == "notebooks"
        assert pod["spec"]["restartPolicy"] == "Never" and "nodeName" not in pod["spec"]
        assert [pod_container["name"] for pod_container in pod["spec"]["containers"]] == ["validator"]
        assert "local process" in pod["status"]["message"] and "podIP" not in pod["status"]
        at.runs.otherwise = FAILS
        pod = await becomes(cluster, phase("Failed"))
        (container,) = pod["status"]["containerStatuses"]
        ended = container["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (1, "Error")
        assert ended["message"] == "Cell execution failed: ModuleNotFoundError"
        assert {entry["manager"] for entry in pod["metadata"]["managedFields"]} == {"notebooks"}
        assert await printed(cluster) == [
            "-- cell 0  Success  0.5s", "42",
            "-- cell 1  Failure  0.1s", "ModuleNotFoundError: No module named 'pandas'",
            "Failed: Cell execution failed: ModuleNotFoundError",
        ]  # fmt: skip
        assert await printed(cluster, tail=1) == ["Failed: Cell execution failed: ModuleNotFoundError"]


async def test_followed_log_has_each_cell_once_and_the_result(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with open_world(cluster, tmp_path) as at, asyncio.timeout(HANG_SECONDS):
        await at.apply(job())
        await at.becomes(lambda status: status["results"])
        await becomes(cluster, phase("Running"))
        following = cluster.logs(POD, follow=True)
        log_lines = [await anext(following), await anext(following)]
        at.runs.otherwise = replace(PASSES, cells=(*GOOD, {**BAD[1], "status": "Success", "errorMessage": ""}))
        log_lines += [line async for line in following]
    assert [line[:18] for line in log_lines] == ["-- cell 0  Success", "42", "-- cell 1  Success", "Succeeded: Validat"]


async def test_rerun_replaces_the_pod_and_deleting_the_job_deletes_it(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with open_world(cluster, tmp_path) as at:
        at.runs.otherwise = FAILS
        await at.apply(job())
        first = await becomes(cluster, phase("Failed"))
        at.runs.answers[2] = PASSES
        await at.patch({"metadata": {"annotations": {"mlops.dev/re-run": "1"}}})
        second = await becomes(cluster, phase("Succeeded"))
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        assert second["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        await cluster.delete(POD)
        await at.patch({"metadata": {"labels": {"a": "b"}}})
        await at.apply(job("later"))
        await becomes(cluster, phase("Failed"), called("later-validation"))
        assert await cluster.get(POD) is None, "who removes it once the run is over does not see it again"
        await at.delete("later")
        await becomes(cluster, lambda pod: pod is None, called("later-validation"))


async def test_foreign_pod_with_the_same_name_is_not_changed(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with open_world(cluster, tmp_path) as at:
        container = {"name": "main", "image": "example:1"}
        metadata = {"name": NAME, "namespace": "default"}
        own = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        created_pod = await cluster.create(own)
        at.runs.otherwise = PASSES
        await at.apply(job())
        await at.ends()
        live = await becomes(cluster, phase("Running"))
        assert live["metadata"]["uid"] == created_pod["metadata"]["uid"] and "annotations" not in live["metadata"]


async def test_quota_counts_the_running_pod_but_does_not_block_runs(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with open_world(cluster, tmp_path) as at:
        spec = {"hard": {"pods": "1"}}
        metadata = {"name": "few", "namespace": "default"}
        quota = await cluster.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})
        used = key_of(quota)
        await becomes(cluster, lambda live: live["status"]["used"]["pods"] == "0", used)
        await at.apply(job())
        await becomes(cluster, lambda live: live["status"]["used"]["pods"] == "1", used)
        await at.apply(job("second"))
        at.runs.otherwise = PASSES
        await at.ends("second")
        await at.ends()
        await becomes(cluster, lambda live: live["status"]["used"]["pods"] == "0", used)


async def test_unknown_pod_has_no_log() -> None:
    with pytest.raises(UserError, match="nothing runs Pods"):
        PodLogDispatcher([PlaceholderPodController(LocalRuns())]).lines(
            {"metadata": {}}, container="", follow=False, tail=None
        )
    assert "nothing runs Pods" in PodLogDispatcher([]).describe_access({})
    assert PodLogDispatcher([]).previous_lines({}, container="", tail=None) is None


def called(name: str) -> ResourceKey:
    return POD._replace(name=name)
