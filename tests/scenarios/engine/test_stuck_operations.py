"""Operations that would never end: removed by hand, or waiting for an image that cannot be pulled."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from support.engine import Room, config_map
from support.sync_operations import deployment, finish_jobs, job
from support.tiers import in_test_all

pytestmark = pytest.mark.anyio
AUTOMATED = {"automated": {"prune": True}, "retry": {"limit": 5, "backoff": {"duration": "1h", "maxDuration": "1h"}}}
WAITS = "waiting for healthy state of apps/Deployment/web"
REMOVED = "Operation terminated: its operation was removed from the Application"


def app_files(image: str, **data: str) -> dict[str, str | Manifest | None]:
    """Return a Deployment, and a ConfigMap in the next wave."""
    web = deployment("web", image)
    late = config_map("late", **data)
    late["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": "1"}
    return {"app/web.yaml": web, "app/late.yaml": late}


async def until_waiting(room: Room, words: str) -> dict[str, Any]:
    return await room.until(lambda status: words in status["operationState"]["message"])


def owned_by(owner: Manifest) -> dict[str, Any]:
    metadata = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": owner["kind"], **metadata, "controller": True}]}


async def leave_pod_waiting(
    room: Room, reason: str = "ImagePullBackOff", owner: Manifest | None = None, **metadata: Any
) -> None:
    """Create a Pod of the Deployment in the state that a kubelet leaves if it cannot start the container."""
    owner = owner or await room.get("apps/Deployment", "web")
    assert owner is not None
    pod = await room.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-1", "namespace": "ml", **owned_by(owner), **metadata},
            "spec": {"containers": [{"name": "main", "image": "web:wrong"}]},
        }
    )
    waiting = {"reason": reason, "message": 'Back-off pulling image "web:wrong"'}
    container = {"name": "main", "image": "web:wrong", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Pending", "containerStatuses": [{**container, "state": {"waiting": waiting}}]}
    await room.cluster.patch(key_of(pod), {"status": status}, subresource="status")


async def test_operation_removed_between_retries_fails_and_the_next_one_runs(room: Room) -> None:
    room.repository.push({"app/bad.yaml": config_map("Bad_Name")})
    await room.deliver(syncPolicy={"retry": AUTOMATED["retry"]})
    await room.patch_app({"operation": {"sync": {}, "retry": AUTOMATED["retry"]}})
    await until_waiting(room, "Retrying attempt #1")
    await room.patch_app({"operation": None})
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Failed" and state["message"] == REMOVED and state["finishedAt"]
    room.repository.push({"app/bad.yaml": config_map("good")})
    await room.sync()
    await room.until_synced()


async def test_removed_operation_deletes_its_running_hook(room: Room) -> None:
    room.repository.push({"app/hook.yaml": job("check", hook="PreSync"), "app/a.yaml": config_map(a="one")})
    await room.deliver()
    await room.sync()
    await until_waiting(room, "waiting for completion of hook")
    await room.patch_app({"operation": None})
    app = await room.until_over()
    assert app["status"]["operationState"]["message"] == REMOVED
    await room.until_gone("batch/Job", "check")
    assert await room.get("ConfigMap", "settings") is None
    await room.sync()
    await until_waiting(room, "waiting for completion of hook")
    await finish_jobs(room.cluster)
    await room.until_synced()


async def test_removed_operation_ends_although_the_application_became_invalid(room: Room) -> None:
    room.repository.push(app_files("web:1"))
    await room.deliver()
    await room.sync()
    await until_waiting(room, WAITS)
    await room.patch_app({"operation": None, "spec": {"project": "nowhere"}})
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Error"
    assert "nowhere" in app["status"]["operationState"]["message"]


async def test_newer_commit_supersedes_a_sync_stuck_on_image_pull(room: Room) -> None:
    first = room.repository.push(app_files("web:wrong", a="one"))
    await room.deliver(syncPolicy=AUTOMATED)
    await until_waiting(room, WAITS)
    await leave_pod_waiting(room)
    second = room.repository.push(app_files("web:right", a="two"))
    await room.annotate(refresh="normal")
    app = await room.until(lambda status: status["operationState"]["syncResult"]["revision"] == second)
    events = (await room.cluster.list(key_kind("Event"), namespace="argocd")).items
    messages = [event["message"] for event in events if "superseded" in event["message"]]
    assert len(messages) == 1 and f"superseded by {second[:7]}" in messages[0], [event["message"] for event in events]
    assert "ImagePullBackOff" in messages[0] and first[:7] != second[:7]
    assert app["status"]["operationState"]["operation"]["initiatedBy"] == {"automated": True}
    live = await room.get("apps/Deployment", "web")
    assert live is not None
    await room.until(lambda status: status["operationState"]["message"].startswith(WAITS))


async def test_image_pull_failure_of_the_previous_commit_does_not_stop_a_sync(room: Room) -> None:
    """k8s: the old Pod stays until the new one is ready, and a model takes minutes to load."""
    room.repository.push(app_files("web:wrong", a="one"))
    await room.deliver(syncPolicy=AUTOMATED)
    await until_waiting(room, WAITS)
    await leave_pod_waiting(room)
    second = room.repository.push(app_files("web:right", a="two"))
    await room.annotate(refresh="normal")
    await room.until(lambda status: status["operationState"]["syncResult"]["revision"] == second)
    await until_waiting(room, WAITS)
    room.repository.push(app_files("web:right", a="three"))
    app = await room.settled()
    state = app["status"]["operationState"]
    assert (state["phase"], state["syncResult"]["revision"]) == ("Running", second), state["message"]


@pytest.mark.parametrize("case", ["it is being deleted", in_test_all("its ReplicaSet is an old one")])
async def test_image_pull_failure_of_an_outgoing_pod_does_not_stop_a_sync(room: Room, case: str) -> None:
    """A newer Pod may have other pull secrets."""
    first = room.repository.push(app_files("web:wrong", a="one"))
    await room.deliver(syncPolicy=AUTOMATED)
    await until_waiting(room, WAITS)
    if case == "it is being deleted":
        await leave_pod_waiting(room, finalizers=["example.com/slow"])
        await room.cluster.delete(ResourceKey("", "Pod", "ml", "web-1"))
    else:
        numbered = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}}
        web = await room.cluster.patch(ResourceKey("apps", "Deployment", "ml", "web"), numbered)
        metadata = {"name": "web-old", "namespace": "ml", "annotations": {"deployment.kubernetes.io/revision": "1"}}
        spec = {name: web["spec"][name] for name in ("selector", "template")}
        old = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {**metadata, **owned_by(web)}, "spec": spec}
        await leave_pod_waiting(room, owner=await room.cluster.create(old))
    room.repository.push(app_files("web:right", a="two"))
    app = await room.settled()
    state = app["status"]["operationState"]
    assert (state["phase"], state["syncResult"]["revision"]) == ("Running", first), state["message"]


def key_kind(kind: str) -> Any:
    return ResourceKey("", kind, "", "").group_kind


@pytest.mark.parametrize("case", [
    "by hand", *(in_test_all(case) for case in ("it may still start", "held", "not automated", "no newer commit")),
])  # fmt: skip
async def test_sync_is_not_superseded_where_a_newer_commit_does_not_apply(room: Room, case: str) -> None:
    first = room.repository.push(app_files("web:wrong", a="one"))
    automated = {} if case in ("by hand", "not automated") else AUTOMATED
    await room.deliver(syncPolicy=automated)
    if case in ("by hand", "not automated"):
        await room.sync(**({"revision": first} if case == "by hand" else {}))
    await until_waiting(room, WAITS)
    if case == "by hand":
        await room.patch_app({"spec": {"syncPolicy": AUTOMATED}})
    if case == "held":
        await room.patch_app({"metadata": {"annotations": {"argosy.dev/hold": '{"reason": "a trial"}'}}})
    await leave_pod_waiting(room, "ContainerCreating" if case == "it may still start" else "ImagePullBackOff")
    if case != "no newer commit":
        room.repository.push(app_files("web:right", a="two"))
    app = await room.settled()
    state = app["status"]["operationState"]
    assert (state["phase"], state["syncResult"]["revision"]) == ("Running", first)
    assert state["message"].startswith(WAITS)
