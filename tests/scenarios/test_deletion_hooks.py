"""PreDelete and PostDelete hooks of an Application, step by step, and their continuation after a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy import annotations as names
from argosy.errors import ClusterError, PolicyError
from argosy.gitops.application import read_application
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.sync.app_deletion import compute_finalizers
from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.application_deletions import ALL_FINALIZERS, Deletion
from support.crashing_client import Crash, CrashingCluster
from support.sync_operations import LISTED, NAMESPACE, Stage, config, finish_jobs, job, manifest

JOBS, CONFIGS = LISTED[2], LISTED[0]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield opened


async def standing(cluster: Cluster, kind: Any = CONFIGS) -> list[str]:
    return await Stage(cluster).names(kind)


async def test_pre_and_post_delete_hooks_run_and_are_cleaned_up_by_policy(cluster: Cluster) -> None:
    hooks = [job("before", hook="PreDelete", policy="HookSucceeded"), job("after", hook="PostDelete")]
    await Stage(cluster, [config("a")]).finish()
    deletion = Deletion(cluster, hooks)
    assert (await deletion.step()).message == "waiting for completion of hook batch/Job/before"
    assert "a" in await standing(cluster)
    await deletion.finish()
    assert deletion.messages[-1] == "waiting for completion of hook batch/Job/after"
    assert "a" not in await standing(cluster) and await standing(cluster, JOBS) == ["after"]
    (left,) = [hook_job for hook_job in (await cluster.list(JOBS)).items if hook_job["metadata"]["name"] == "after"]
    assert not left["metadata"].get("finalizers")


async def test_pre_delete_hooks_of_one_wave_run_together_and_waves_in_order(cluster: Cluster) -> None:
    hooks = [job("one", hook="PreDelete"), job("two", hook="PreDelete"), job("late", hook="PreDelete", wave=1)]
    deletion = Deletion(cluster, hooks, finalizers=ALL_FINALIZERS[:2])
    assert (await deletion.step()).message == "waiting for completion of hook batch/Job/one and 1 more hooks"
    assert await standing(cluster, JOBS) == ["one", "two"]
    await finish_jobs(cluster)
    assert (await deletion.step()).message == "waiting for completion of hook batch/Job/late"
    await deletion.finish()


async def test_failed_pre_delete_hook_is_reported_and_retried(cluster: Cluster) -> None:
    await Stage(cluster, [config("a")]).finish()
    deletion = Deletion(cluster, [job("before", hook="PreDelete")], well=False)
    with pytest.raises(AssertionError):
        await deletion.finish(6)
    assert deletion.errors[0] == "PreDelete hook batch/Job/before failed: Failed it is"
    assert "a" in await standing(cluster)
    deletion.well = True
    await deletion.finish()


@pytest.mark.parametrize("finalizers", [ALL_FINALIZERS, ALL_FINALIZERS[3:]])
async def test_no_deletion_hook_runs_if_the_project_forbids_one(cluster: Cluster, finalizers: tuple[str, ...]) -> None:
    hooks = [job("before", hook="PreDelete,PostDelete"), job("forbidden", hook="PreDelete,PostDelete", wave=1)]

    def find_refusal(key: ResourceKey) -> str:
        return "namespace x is not permitted" if key.name == "forbidden" else ""

    deletion = Deletion(cluster, hooks, finalizers=finalizers, may_run_hook=find_refusal)
    with pytest.raises(PolicyError, match="hook batch/Job/forbidden is not permitted: namespace x is not permitted"):
        await deletion.step()
    assert not await standing(cluster, JOBS)


async def test_clean_up_leaves_objects_that_the_project_forbids(cluster: Cluster) -> None:
    """The hook cannot have run, so an object of its name belongs to somebody else."""
    await Stage(cluster, [job("theirs")]).finish()
    hook = job("theirs", hook="PostDelete", policy="HookSucceeded")
    deletion = Deletion(cluster, [hook], finalizers=ALL_FINALIZERS[4:], may_run_hook=lambda _: "not permitted")
    await deletion.finish()
    assert await standing(cluster, JOBS) == ["theirs"]


async def test_clean_up_releases_a_hook_that_the_project_forbids_by_now(cluster: Cluster) -> None:
    hooks = [job("after", hook="PostDelete", policy="HookSucceeded")]
    deletion = Deletion(cluster, hooks, finalizers=ALL_FINALIZERS[3:])
    await deletion.step()
    await finish_jobs(cluster)
    await deletion.step()
    deletion.may_run_hook = lambda _: "not permitted"
    await deletion.step()
    assert not deletion.finalizers
    live = await cluster.get(ResourceKey(*JOBS, NAMESPACE, "after"))
    assert live is not None and "finalizers" not in live["metadata"] and "deletionTimestamp" not in live["metadata"]


async def test_clean_up_leaves_an_object_that_took_the_place_of_a_hook(cluster: Cluster) -> None:
    deletion = Deletion(
        cluster, [job("after", hook="PostDelete", policy="HookSucceeded")], finalizers=ALL_FINALIZERS[3:]
    )
    await deletion.step()
    await finish_jobs(cluster)
    await deletion.step()
    assert deletion.finalizers == ALL_FINALIZERS[4:]
    hook = ResourceKey(*JOBS, NAMESPACE, "after")
    await cluster.patch(hook, {"metadata": {"finalizers": None}})
    await cluster.delete(hook)
    foreign_job = job("after", annotations={names.HOOK: "PostDelete"})
    foreign_job["metadata"]["finalizers"] = [names.HOOK_FINALIZER]
    foreign = await cluster.create(foreign_job)
    await deletion.step()
    live = await cluster.get(hook)
    assert live is not None and live["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert live["metadata"]["finalizers"] == [names.HOOK_FINALIZER] and "deletionTimestamp" not in live["metadata"]


def find_owner(live: Manifest) -> str:
    owner = (live["metadata"].get("labels") or {}).get("owner")
    return f"it belongs to {owner}" if owner else ""


@pytest.mark.parametrize("well", [True, False])
async def test_hook_that_another_application_took_over_is_neither_awaited_nor_deleted(
    cluster: Cluster, *, well: bool
) -> None:
    deletion = Deletion(
        cluster, [job("before", hook="PreDelete")], finalizers=ALL_FINALIZERS[:2], is_foreign=find_owner
    )
    await deletion.step()
    hook = ResourceKey(*JOBS, NAMESPACE, "before")
    await cluster.patch(hook, {"metadata": {"labels": {"owner": "others"}}})
    await finish_jobs(cluster, well=well)
    answer = await deletion.step()
    assert answer.error == (
        "PreDelete hook batch/Job/before cannot be created: an object of this name exists, and it belongs to others"
    )
    live = await cluster.get(hook)
    assert live is not None and "deletionTimestamp" not in live["metadata"]


async def test_hook_that_is_taken_over_just_before_its_deletion_stays(cluster: Cluster) -> None:
    class TakenOver(ForwardingCluster):
        async def _send(self, call: Call, send: Send[Any]) -> Any:
            if call.method == "delete":
                await cluster.patch(call.key, {"metadata": {"labels": {"owner": "others"}}})
            return await send()

    hooks = [job("before", hook="PreDelete")]
    deletion = Deletion(cluster, hooks, finalizers=ALL_FINALIZERS[:2], is_foreign=find_owner, engine=TakenOver(cluster))
    await deletion.step()
    await finish_jobs(cluster, well=False)
    await deletion.step()
    live = await cluster.get(ResourceKey(*JOBS, NAMESPACE, "before"))
    assert live is not None and "deletionTimestamp" not in live["metadata"]


async def test_refused_secret_hook_is_reported_without_its_values(cluster: Cluster) -> None:
    """An admission webhook may quote the object that it refuses."""

    class Refusing(ForwardingCluster):
        async def _send(self, call: Call, send: Send[Any]) -> Any:
            if call.method == "create":
                raise ClusterError('admission webhook "policy" denied the request: "hushed", aHVzaGh1c2g=', code=400)
            return await send()

    values = {"stringData": {"text": "hushed"}, "data": {"encoded": "aHVzaGh1c2g="}}
    hook = manifest("Secret", "login", hook="PreDelete", **values)
    deletion = Deletion(cluster, [hook], finalizers=ALL_FINALIZERS[:2], engine=Refusing(cluster))
    with pytest.raises(ClusterError) as refused:
        await deletion.step()
    assert refused.value.message == (
        'PreDelete hook /Secret/login cannot be created: admission webhook "policy" denied the request: '
        '"++++++++", ++++++++'
    )
    assert "hush" not in str(refused.value) and "aHVz" not in str(refused.value)


async def test_hook_finalizers_are_added_and_removed_with_the_hooks() -> None:
    app = read_application({"metadata": {"name": "a", "finalizers": ["mine", *ALL_FINALIZERS[3:]]}, "spec": {}})
    hooks = [job("before", hook="PreDelete"), config("a")]
    assert compute_finalizers(app, hooks) == ("mine", *ALL_FINALIZERS[:2])
    assert compute_finalizers(app, [config("a")]) == ("mine",)


@pytest.mark.tier("all")
async def test_deletion_killed_at_any_api_call_ends_with_the_same_result() -> None:
    hooks = [job("before", hook="PreDelete", policy="HookSucceeded"), job("after", hook="PostDelete")]

    async def played(point: int | None, *, after: bool) -> tuple[Any, ...]:
        async with EmbeddedCluster.open() as cluster:
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            await Stage(cluster, [config("a"), config("b", wave=1), config("kept", options="Delete=false")]).finish()
            engine = CrashingCluster(cluster, point, after=after)
            deletion = Deletion(cluster, hooks, engine=engine)
            try:
                await deletion.finish()
            except Crash:
                deletion.engine = CrashingCluster(cluster, created=engine.created)
                await deletion.finish()
            runs = Counter(created["metadata"]["name"] for created in engine.created if is_hook(created))
            return runs, await standing(cluster), await standing(cluster, JOBS), len(engine.calls)

    *whole, calls = await played(None, after=False)
    assert whole == [Counter(before=1, after=1), ["kept"], ["after"]]
    for point in range(calls):
        for after in (False, True):
            *outcome, _ = await played(point, after=after)
            assert outcome == whole, f"{'after' if after else 'before'} call {point}"
