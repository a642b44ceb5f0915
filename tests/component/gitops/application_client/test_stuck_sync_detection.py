"""Detection of Pods that keep a sync from succeeding, so that a rollback may terminate it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.cli.exit_codes import EXIT_TIMED_OUT
from argosy.features.applications.sync.operation_result_output import print_result
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.condition_wait import WaitOutcome, WaitResult
from argosy.gitops.application_client.stuck_pods import (
    UNSCHEDULABLE_REASON,
    describe_stuck_pods,
    find_stuck_sync_reason,
)
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
async def desk() -> AsyncIterator[ApplicationService]:
    async with EmbeddedCluster.open() as cluster:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        yield ApplicationService(cluster, "embedded", "argocd", "argocd", acting_user="ann")


def owned_by(owner: Manifest) -> list[dict[str, Any]]:
    metadata = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **metadata, "controller": True}]


async def create_workload(
    desk: ApplicationService,
    image: str,
    kind: str = "Deployment",
    name: str = "web",
    owner: Manifest | None = None,
    revision: str = "1",
) -> Manifest:
    metadata: dict[str, Any] = {"name": name, "namespace": "ml", "annotations": {REVISION: revision}}
    if owner is not None:
        metadata["ownerReferences"] = owned_by(owner)
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return await desk.cluster.create({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})


async def create_pod(desk: ApplicationService, owner: Manifest, image: str, **metadata: Any) -> Manifest:
    """Create a Pod whose image cannot be pulled."""
    about = {"name": "web-1", "namespace": "ml", "ownerReferences": owned_by(owner), **metadata}
    spec = {"containers": [{"name": "main", "image": image}]}
    pod = await desk.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec})
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    container = {"name": "main", "image": image, "imageID": "", "ready": False, "restartCount": 0, "state": state}
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": UNSCHEDULABLE_REASON, "message": "no room"}
    status = {"phase": "Pending", "containerStatuses": [container], "conditions": [unscheduled]}
    return await desk.cluster.patch(key_of(pod), {"status": status}, subresource="status")


def syncing(**phases: str) -> Application:
    """Build an Application with a running sync; `phases` has the hook phase of each Deployment's result."""
    parts = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "ml"}
    results = [
        {**parts, "name": name, "status": "Synced", "hookPhase": phase, "syncPhase": "Sync"}
        for name, phase in phases.items()
    ]
    state = {"operation": {"sync": {}}, "phase": "Running", "startedAt": "2026-01-01T00:00:00Z",
             "syncResult": {"revision": "a" * 40, "resources": results}}  # fmt: skip
    status = {"operationState": state, "resources": [{**parts, "name": name, "status": "Synced"} for name in phases]}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "ml"}
    metadata = {"name": "models", "namespace": "argocd"}
    return read_application(
        {"metadata": metadata, "spec": {"destination": destination}, "status": status, "operation": {"sync": {}}}
    )


STUCK = "Pod/web-1 -n ml: container main  ImagePullBackOff: no such image"


async def test_sync_is_stuck_when_pod_cannot_pull_image_of_current_template(desk: ApplicationService) -> None:
    web = await create_workload(desk, "web:1")
    await create_pod(desk, await create_workload(desk, "web:1", "ReplicaSet", "web-a", web), "web:1")
    assert await find_stuck_sync_reason(desk, syncing(web="Running")) == STUCK
    assert await describe_stuck_pods(desk, syncing(web="Running")) == [STUCK]


async def test_pod_of_an_already_succeeded_object_is_not_a_stuck_reason(desk: ApplicationService) -> None:
    await create_workload(desk, "slow:1", name="slow")
    await create_pod(desk, await create_workload(desk, "web:1"), "web:1")
    app = syncing(web="Succeeded", slow="Running")
    assert await find_stuck_sync_reason(desk, app) == ""
    assert await describe_stuck_pods(desk, app) == [STUCK]  # describe_stuck_pods reports it while waiting for health


@pytest.mark.parametrize("image", ["web:2", "web:1"])
async def test_pod_of_old_replica_set_is_not_a_stuck_reason(desk: ApplicationService, image: str) -> None:
    """This holds for an older image and for the same one: the new Pods may have other pull secrets."""
    web = await create_workload(desk, image, revision="2")
    await create_pod(desk, await create_workload(desk, "web:1", "ReplicaSet", "web-a", web), "web:1")
    assert await find_stuck_sync_reason(desk, syncing(web="Running")) == ""
    assert await describe_stuck_pods(desk, syncing(web="Running")) == []


async def test_terminating_pod_is_not_a_stuck_reason(desk: ApplicationService) -> None:
    pod = await create_pod(desk, await create_workload(desk, "web:1"), "web:1", finalizers=["example.com/slow"])
    await desk.cluster.delete(key_of(pod))
    assert await find_stuck_sync_reason(desk, syncing(web="Running")) == ""
    assert await describe_stuck_pods(desk, syncing(web="Running"), frozenset({UNSCHEDULABLE_REASON})) == []


async def test_image_no_longer_in_the_template_is_not_a_stuck_reason(desk: ApplicationService) -> None:
    await create_pod(desk, await create_workload(desk, "web:2"), "web:1")
    assert await find_stuck_sync_reason(desk, syncing(web="Running")) == ""
    waits_for_room = await describe_stuck_pods(desk, syncing(web="Running"), frozenset({UNSCHEDULABLE_REASON}))
    assert waits_for_room == ["Pod/web-1 -n ml: Unschedulable: no room"]


async def test_sync_timeout_message_names_the_stuck_pod(
    desk: ApplicationService, capsys: pytest.CaptureFixture[str]
) -> None:
    await create_pod(desk, await create_workload(desk, "web:1"), "web:1")
    chosen = argparse.Namespace(timeout=3.0, output="", compat=False)
    assert (
        await print_result(desk, WaitResult(WaitOutcome.TOO_LATE, syncing(web="Running")), chosen, "sync")
        == EXIT_TIMED_OUT
    )
    output = capsys.readouterr().err
    assert output.startswith("argosy: models: sync has not finished after 3 s\n") and STUCK in output
