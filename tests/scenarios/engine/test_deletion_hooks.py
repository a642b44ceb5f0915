"""PreDelete and PostDelete hooks that meet foreign objects, have no name, are refused, or leave Git meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy import annotations as names
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, conditions, config_map
from support.sync_operations import finish_jobs, job

pytestmark = pytest.mark.anyio
APP = ResourceKey("argoproj.io", "Application", CONTROL, "models")
FINALIZER = "resources-finalizer.argocd.argoproj.io"
ONE = {"app/settings.yaml": config_map(a="one")}


def build_hook(name: str = "hook", **annotations: str) -> dict[str, Any]:
    """Return a Job that the test finishes."""
    texts = {f"argocd.argoproj.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**job(name), "metadata": {"name": name, "annotations": texts}}


async def deliver(room: Room, files: dict[str, Any], *finalizers: str) -> None:
    room.repository.push(files)
    await room.deliver(metadata={"finalizers": list(finalizers)}, syncPolicy={"automated": {}})
    await room.until_synced()


async def wait_for_job(room: Room) -> Manifest:
    """Wait until the namespace has a Job, and return it."""
    async with asyncio.timeout(HANG_SECONDS):
        while not (jobs := (await room.cluster.list(GroupKind("batch", "Job"), namespace="ml")).items):
            await asyncio.sleep(0.02)
    return jobs[0]


@pytest.mark.parametrize("phase", ["PreDelete", "PostDelete"])
@pytest.mark.parametrize("owner", ["", "others"])
async def test_foreign_object_with_the_name_of_a_deletion_hook_stays_untouched(
    room: Room, phase: str, owner: str
) -> None:
    hook = {**config_map("hook"), "metadata": {"name": "hook", "annotations": {names.HOOK: phase}}}
    await deliver(room, {**ONE, "app/hook.yaml": hook}, FINALIZER)
    annotations = {names.TRACKING_ID: f"{owner}:/ConfigMap:ml/hook"} if owner else {}
    metadata = {"name": "hook", "namespace": "ml", "annotations": annotations, "finalizers": [names.HOOK_FINALIZER]}
    foreign = await room.cluster.create({**config_map("hook", mine="yes"), "metadata": metadata})
    await room.cluster.delete(APP)
    message = await room.until_condition("DeletionError")
    assert message == (
        f"{phase} hook /ConfigMap/hook cannot be created: an object of this name exists, and "
        f"it belongs to {owner or 'no application'}, not to this application"
    )
    assert await room.get("ConfigMap", "hook") == foreign
    assert (await room.get("ConfigMap", "settings") is None) == (phase == "PostDelete")
    await room.cluster.patch(key_of(foreign), {"metadata": {"finalizers": None}})
    await room.cluster.delete(key_of(foreign))
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await room.get("ConfigMap", "settings") is None


@pytest.mark.parametrize("name", [{}, {"generateName": "clean-up-"}])
async def test_deletion_hook_without_a_name_runs_once(room: Room, name: dict[str, str]) -> None:
    hook = build_hook(hook="PostDelete")
    metadata = {"annotations": hook["metadata"]["annotations"], **name}
    await deliver(room, {**ONE, "app/hook.yaml": {**hook, "metadata": metadata}}, FINALIZER)
    await room.cluster.delete(APP)
    created = await wait_for_job(room)
    assert created["metadata"]["name"].startswith(name.get("generateName", "postdelete-"))
    await finish_jobs(room.cluster)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    assert (await room.cluster.list(GroupKind("batch", "Job"))).items[1:] == []


async def test_refused_deletion_hook_is_reported_until_it_is_created(room: Room) -> None:
    hook = build_hook(hook="PreDelete")
    invalid_hook = {**hook, "spec": {"template": {"spec": {**hook["spec"]["template"]["spec"], "restartPolicy": "x"}}}}
    await deliver(room, {**ONE, "app/hook.yaml": invalid_hook}, FINALIZER)
    await room.cluster.delete(APP)
    message = await room.until_condition("DeletionError")
    assert message.startswith('PreDelete hook batch/Job/hook cannot be created: Job.batch "hook" is invalid: ')
    assert await room.get("ConfigMap", "settings") is not None
    room.repository.push({"app/hook.yaml": {**hook, "spec": job("hook")["spec"]}})
    await room.annotate(refresh="normal")
    await wait_for_job(room)
    await room.until(lambda status: not conditions(status, "DeletionError"))
    await finish_jobs(room.cluster)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)


@pytest.mark.parametrize("policy", ["", "HookSucceeded"])
@pytest.mark.parametrize("phase", ["PreDelete", "PostDelete"])
async def test_deletion_hook_that_left_git_while_it_ran_is_released(room: Room, phase: str, policy: str) -> None:
    hook = build_hook(hook=phase, **({"hook_delete_policy": policy} if policy else {}))
    await deliver(room, {**ONE, "app/hook.yaml": hook})
    await room.cluster.delete(APP)
    created = await wait_for_job(room)
    assert names.HOOK_FINALIZER in created["metadata"]["finalizers"]
    room.repository.push({"app/hook.yaml": None})
    await room.settled()
    await finish_jobs(room.cluster)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    live = await room.cluster.get(key_of(created))
    if policy:
        assert live is None or names.HOOK_FINALIZER not in live["metadata"].get("finalizers", ())
    else:
        assert live is not None and "finalizers" not in live["metadata"]


async def test_running_deletion_hook_that_a_user_deletes_is_created_again(room: Room) -> None:
    await deliver(room, {**ONE, "app/hook.yaml": build_hook(hook="PreDelete")}, FINALIZER)
    await room.cluster.delete(APP)
    first = await wait_for_job(room)
    await room.cluster.delete(key_of(first))
    async with asyncio.timeout(HANG_SECONDS):
        while (await wait_for_job(room))["metadata"]["uid"] == first["metadata"]["uid"]:
            await asyncio.sleep(0.02)
    assert await room.get("ConfigMap", "settings") is not None
    await finish_jobs(room.cluster)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
