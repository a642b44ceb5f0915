"""Deletion of an Application by the engine: finalizers, waves, confirmation and deletion hooks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy import annotations as names
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map
from support.sync_operations import finish_jobs, job
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
APP = ResourceKey("argoproj.io", "Application", CONTROL, "models")
FINALIZER = "resources-finalizer.argocd.argoproj.io"
ONE = {"app/settings.yaml": config_map(a="one")}


def annotated(name: str, **annotations: str) -> dict[str, Any]:
    prefixed_annotations = {f"argocd.argoproj.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**config_map(name), "metadata": {"name": name, "annotations": prefixed_annotations}}


async def delivered(room: Room, files: dict[str, Any], finalizers: tuple[str, ...] = (FINALIZER,)) -> None:
    room.repository.push(files)
    await room.deliver(metadata={"finalizers": list(finalizers)}, syncPolicy={"automated": {}})
    await room.until_synced()


async def test_delete_without_finalizer_keeps_resources(room: Room) -> None:
    await delivered(room, ONE, ())
    await room.cluster.delete(APP)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is not None


@pytest.mark.parametrize(
    "word", ["", *(pytest.param(suffix, marks=IN_TEST_ALL) for suffix in ("/foreground", "/background"))]
)
async def test_delete_with_finalizer_removes_resources(room: Room, word: str) -> None:
    await delivered(room, ONE, (FINALIZER + word,))
    await room.cluster.delete(APP)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is None


async def test_delete_keeps_resources_with_delete_false(room: Room) -> None:
    await delivered(room, {**ONE, "app/kept.yaml": annotated("kept", sync_options="Delete=false")})
    await room.cluster.delete(APP)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is None
    assert await room.get("ConfigMap", "kept") is not None


async def test_delete_confirm_resources_wait_for_approval(room: Room) -> None:
    await delivered(room, {**ONE, "app/asks.yaml": annotated("asks", sync_options="Delete=confirm")})
    lines = (await room.app())["status"]["resources"]
    assert [line["name"] for line in lines if line.get("requiresDeletionConfirmation")] == ["asks"]
    await room.cluster.delete(APP)
    assert await room.get("ConfigMap", "asks") is not None
    approved = room.clock.now().replace(year=room.clock.now().year + 1).isoformat()
    await room.annotate(deletion_approved=approved)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "asks") is None


async def test_deletion_hooks_set_finalizers_and_run_before_and_after(room: Room) -> None:
    before, after = annotated("before", hook="PreDelete"), annotated("after", hook="PostDelete")
    await delivered(room, {**ONE, "app/before.yaml": before, "app/after.yaml": after})
    app = await room.app()
    words = " ".join(app["metadata"]["finalizers"])
    assert "pre-delete-finalizer.argocd.argoproj.io" in words
    assert "post-delete-finalizer.argocd.argoproj.io" in words
    assert await room.get("ConfigMap", "before") is None
    await room.cluster.delete(APP)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is None
    # argo: a PreDelete hook is deleted with the resources, a PostDelete hook stays unless a delete policy is set
    assert await room.get("ConfigMap", "before") is None
    after_hook = await room.get("ConfigMap", "after")
    assert after_hook is not None and names.LAST_APPLIED not in after_hook["metadata"]["annotations"]


async def test_failed_pre_delete_hook_blocks_deletion_and_is_retried(room: Room) -> None:
    before = job("before", hook="PreDelete")
    await delivered(room, {**ONE, "app/before.yaml": {**before, "metadata": {**before["metadata"], "namespace": "ml"}}})
    await room.cluster.delete(APP)

    async def a_run_ends(*, well: bool, other_than: str = "") -> str:
        while not (hook := await room.get("batch/Job", "before")) or hook["metadata"]["uid"] == other_than:
            await asyncio.sleep(0.02)
        await finish_jobs(room.cluster, well=well)
        return str(hook["metadata"]["uid"])

    async with asyncio.timeout(HANG_SECONDS):
        first = await a_run_ends(well=False)
        message = await room.until_condition("DeletionError")
        assert message == "PreDelete hook batch/Job/before failed: Failed it is"
        assert await room.get("ConfigMap", "settings") is not None
        await a_run_ends(well=True, other_than=first)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is None
    events = (await room.cluster.list(GroupKind("", "Event"), namespace=CONTROL)).items
    (event_message,) = [event["message"] for event in events if event["reason"] == "ResourceDeleted"]
    assert event_message == f"deleted application and its resources at {room.repository.head}"


async def test_deletion_finishes_the_highest_wave_before_lower_waves(room: Room) -> None:
    late = annotated("late", sync_wave="5")
    late["metadata"]["finalizers"] = ["example.com/held"]
    await delivered(room, {**ONE, "app/late.yaml": late, "app/mid.yaml": annotated("mid", sync_wave="1")})
    await room.cluster.delete(APP)
    async with asyncio.timeout(HANG_SECONDS):
        while not ((await room.get("ConfigMap", "late") or {})["metadata"]).get("deletionTimestamp"):
            await asyncio.sleep(0.02)
    for name in ("mid", "settings"):
        live = await room.get("ConfigMap", name)
        assert live and not live["metadata"].get("deletionTimestamp")
    patch = {"metadata": {"finalizers": None}}
    await room.cluster.patch(ResourceKey("", "ConfigMap", "ml", "late"), patch)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)


async def test_refresh_is_answered_while_the_application_is_being_deleted(room: Room) -> None:
    before = job("before", hook="PreDelete")
    hook = {**before, "metadata": {**before["metadata"], "namespace": "ml"}}
    await delivered(room, {**ONE, "app/before.yaml": hook})
    await room.cluster.delete(APP)
    async with asyncio.timeout(HANG_SECONDS):
        while not await room.get("batch/Job", "before"):
            await asyncio.sleep(0.02)
    await room.annotate(refresh="normal")
    async with asyncio.timeout(HANG_SECONDS):
        while names.REFRESH in ((await room.app())["metadata"].get("annotations") or {}):
            await asyncio.sleep(0.02)
    await finish_jobs(room.cluster)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)


async def test_deletion_waits_for_the_running_sync(room: Room) -> None:
    """A deletion in the middle of a sync would delete what the sync creates a moment later."""
    before = job("before", hook="PreSync")
    room.repository.push({**ONE, "app/before.yaml": {**before, "metadata": {**before["metadata"], "namespace": "ml"}}})
    await room.deliver(metadata={"finalizers": [FINALIZER]}, syncPolicy=None)
    await room.sync()
    async with asyncio.timeout(HANG_SECONDS):
        while not await room.get("batch/Job", "before"):
            await asyncio.sleep(0.02)
    await room.cluster.delete(APP)
    await room.settled()
    operation = (await room.app())["status"]["operationState"]
    assert operation["phase"] == "Running" and await room.get("batch/Job", "before") is not None
    await room.patch_app({"status": {"operationState": {"phase": "Terminating"}}})
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("batch/Job", "before") is None and await room.get("ConfigMap", "settings") is None


async def test_operation_of_an_invalid_application_is_rejected_while_it_is_being_deleted(room: Room) -> None:
    """The project does not permit Applications in this namespace, so whoever may write there must not sync."""
    room.repository.push(ONE)
    stray = ResourceKey("argoproj.io", "Application", "ml", "stray")
    source = {"repoURL": room.repository.url, "path": "app", "targetRevision": "main"}
    await room.cluster.create({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "stray", "namespace": "ml", "finalizers": ["example.com/held"]},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
        },
    })  # fmt: skip
    await room.cluster.delete(stray)
    await room.cluster.patch(stray, {"operation": {"sync": {}}})
    async with asyncio.timeout(HANG_SECONDS):
        while "operation" in (app := await room.cluster.get(stray) or {}):
            await asyncio.sleep(0.02)
    assert app["status"]["operationState"]["phase"] == "Error"
    assert await room.get("ConfigMap", "settings") is None
    await room.cluster.patch(stray, {"metadata": {"finalizers": None}})


async def test_deletion_hook_outside_the_project_is_never_created(room: Room) -> None:
    before = annotated("before", hook="PreDelete")
    before["metadata"]["namespace"] = "kube-system"
    await room.project(destinations=[{"server": "*", "namespace": "ml"}])
    room.repository.push({**ONE, "app/before.yaml": before})
    await room.deliver(project="team", metadata={"finalizers": [FINALIZER]})
    await room.until(lambda status: status.get("sync"))
    await room.cluster.delete(APP)
    message = await room.until_condition("DeletionError")
    assert message.startswith("PreDelete hook /ConfigMap/before is not permitted: namespace kube-system")
    assert await room.get("ConfigMap", "before", "kube-system") is None


@pytest.mark.tier("all")
async def test_application_with_unknown_cluster_is_deleted(room: Room) -> None:
    room.repository.push(ONE)
    destination = {"name": "mars", "namespace": "ml"}
    await room.deliver(metadata={"finalizers": [FINALIZER]}, destination=destination)
    await room.until_condition("InvalidSpecError")
    await room.cluster.delete(APP)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)


@pytest.mark.tier("all")
async def test_deletion_waits_for_the_source_if_its_hooks_cannot_be_rendered(room: Room) -> None:
    before = job("before", hook="PreDelete")
    await delivered(room, {**ONE, "app/before.yaml": {**before, "metadata": {**before["metadata"], "namespace": "ml"}}})
    await room.patch_app({"spec": {"source": {"targetRevision": "nowhere"}, "syncPolicy": None}})
    await room.until_condition("ComparisonError")
    await room.cluster.delete(APP)
    message = await room.until_condition("DeletionError")
    assert (
        message.startswith("cannot determine the deletion hooks: Failed to load target state: ")
        and "nowhere" in message
    )
    assert await room.get("ConfigMap", "settings") is not None
    await room.patch_app({"spec": {"source": {"targetRevision": "main"}}})
    async with asyncio.timeout(HANG_SECONDS):
        while not await room.get("batch/Job", "before"):
            await asyncio.sleep(0.02)
        await finish_jobs(room.cluster, well=True)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)


@pytest.mark.tier("all")
async def test_resources_are_deleted_although_the_source_is_gone(room: Room) -> None:
    await delivered(room, ONE)
    await room.patch_app({"spec": {"source": {"targetRevision": "nowhere"}, "syncPolicy": None}})
    await room.until_condition("ComparisonError")
    await room.cluster.delete(APP)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is None
