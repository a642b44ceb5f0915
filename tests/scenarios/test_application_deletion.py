"""Deletion of an Application with its resources and hooks, step by step, and its continuation after a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from argosy import annotations as names
from argosy.errors import ArgosyError, ClusterError, PolicyError, TransientError
from argosy.gitops.application import Application, SyncRequest, read_application
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.sync.app_deletion import DeletionStep, advance_deletion, compute_finalizers
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.crashing_client import Crash, CrashingCluster
from support.sync_operations import (
    LISTED,
    NAMESPACE,
    WIDGET,
    Stage,
    config,
    definition,
    finish_jobs,
    job,
    judge,
    manifest,
)

JOBS, CONFIGS = LISTED[2], LISTED[0]
ALL = (
    "pre-delete-finalizer.argocd.argoproj.io", "pre-delete-finalizer.argocd.argoproj.io/cleanup",
    "resources-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup",
)  # fmt: skip
RESOURCES = ALL[2:3]
DEFINITION = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield opened


@dataclass
class Deletion:
    """Calls `advance_deletion` with the live objects and keeps the finalizers that it returns."""

    cluster: Cluster
    hooks: list[Manifest] = field(default_factory=list)
    finalizers: tuple[str, ...] = ALL
    annotations: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    may_delete: Callable[[Manifest], str] = lambda _: ""
    may_run_hook: Callable[[ResourceKey], str] = lambda _: ""
    engine: Cluster | None = None
    well: bool = True
    errors: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def app(self) -> Application:
        metadata = {"name": "demo", "namespace": "argocd", "uid": "u", "finalizers": list(self.finalizers),
                    "deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": self.annotations}  # fmt: skip
        return read_application({"metadata": metadata, "spec": {"syncPolicy": {"syncOptions": self.options}}})

    async def step(self) -> DeletionStep:
        live = await Stage(self.cluster).live()
        answer = await advance_deletion(
            self.app, live, self.hooks, cluster=self.engine or self.cluster, assess_all=judge,
            find_refusal=self.may_delete, find_hook_refusal=self.may_run_hook,
        )  # fmt: skip
        self.finalizers = answer.finalizers
        self.messages += [answer.message] if answer.message else []
        self.errors += [answer.error] if answer.error else []
        return answer

    async def finish(self, most: int = 60) -> None:
        for _ in range(most):
            if not self.finalizers:
                return
            await self.step()
            await finish_jobs(self.cluster, well=self.well)
            await asyncio.sleep(0)
        raise AssertionError(f"still {self.finalizers}: {self.messages}")


async def standing(cluster: Cluster, kind: Any = CONFIGS) -> list[str]:
    return await Stage(cluster).names(kind)


async def test_resources_are_deleted_from_the_highest_wave_down(cluster: Cluster) -> None:
    held = config("late", wave=2)
    held["metadata"]["finalizers"] = ["example.com/held"]
    await Stage(cluster, [config("early", wave=-1), config("mid"), held]).finish()
    deletion = Deletion(cluster, finalizers=RESOURCES)
    answer = await deletion.step()
    assert answer.message == "waiting for deletion of /ConfigMap/late" and answer.wait
    await deletion.step()
    assert {"early", "mid"} <= set(await standing(cluster))
    await cluster.patch(ResourceKey(*CONFIGS, NAMESPACE, "late"), {"metadata": {"finalizers": None}})
    await deletion.finish()
    assert not {"early", "mid", "late"} & set(await standing(cluster))


@pytest.mark.parametrize(
    ("annotations", "options"),
    [
        ({names.SYNC_OPTIONS: "Delete=false"}, []),
        ({names.HELM_RESOURCE_POLICY: "keep"}, []),
        ({}, ["Delete=false"]),
    ],
)
async def test_delete_false_keeps_the_object(cluster: Cluster, annotations: dict[str, str], options: list[str]) -> None:
    await Stage(cluster, [config("kept", annotations=annotations)]).finish()
    await Deletion(cluster, finalizers=RESOURCES, options=options).finish()
    assert "kept" in await standing(cluster)


async def test_crds_and_objects_refused_by_policy_are_not_deleted(cluster: Cluster) -> None:
    await Stage(cluster, [config("foreign"), definition()]).finish()
    await Deletion(cluster, finalizers=RESOURCES, may_delete=lambda _: "not ours").finish()
    assert "foreign" in await standing(cluster)
    await Deletion(cluster, finalizers=RESOURCES).finish()
    assert "foreign" not in await standing(cluster)
    assert await cluster.get(ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com"))


@pytest.mark.parametrize("hooks", [[], [manifest("Widget", "w", api="example.com/v1", hook="PreDelete")]])
async def test_deletion_finishes_when_the_crd_of_an_object_was_deleted(cluster: Cluster, hooks: list[Manifest]) -> None:
    """The engine's cache may still list the object."""
    await Stage(cluster, [definition(), manifest("Widget", "w", api="example.com/v1"), config("a")]).finish()
    deletion = Deletion(cluster, hooks, finalizers=ALL[1:3] if hooks else RESOURCES)
    live = await Stage(cluster).live()
    await cluster.delete(DEFINITION)
    for _ in range(6):
        answer = await advance_deletion(
            deletion.app, live, hooks, cluster=cluster, assess_all=judge,
            find_refusal=lambda _: "", find_hook_refusal=lambda _: "",
        )  # fmt: skip
        deletion.finalizers = answer.finalizers
        await asyncio.sleep(0)
    assert WIDGET not in await cluster.kinds()
    assert not deletion.finalizers and "a" not in await standing(cluster)


@pytest.mark.parametrize("error", [TransientError("the extension server is down"), ClusterError("no", code=500)])
async def test_deletion_keeps_its_finalizer_when_an_object_cannot_be_read(cluster: Cluster, error: ArgosyError) -> None:
    await Stage(cluster, [config("a")]).finish()
    deletion = Deletion(cluster, finalizers=RESOURCES, engine=cast(Cluster, Silent(cluster, error)))
    with pytest.raises(type(error)):
        await deletion.step()
    assert deletion.finalizers == RESOURCES


class Silent:
    """Fails every read of a single object."""

    def __init__(self, cluster: Cluster, error: ArgosyError) -> None:
        self._cluster, self._error = cluster, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def get(self, key: ResourceKey) -> None:
        raise self._error


class TakenOver:
    """Relabels the object as another application's right before the first call of one verb, then forwards that call."""

    def __init__(self, cluster: Cluster, verb: str) -> None:
        self._cluster, self._verb = cluster, verb

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._cluster, name)
        if name != self._verb:
            return attribute

        async def call(key: ResourceKey, **more: Any) -> Any:
            self._verb = ""
            await self._cluster.patch(key, {"metadata": {"labels": {"owner": "another"}}})
            return await attribute(key, **more)

        return call


@pytest.mark.parametrize("verb", ["get", "delete"])
async def test_object_taken_over_by_another_application_is_not_deleted(cluster: Cluster, verb: str) -> None:
    await Stage(cluster, [config("a")]).finish()

    def is_foreign(manifest: Manifest) -> str:
        return str((manifest["metadata"].get("labels") or {}).get("owner", ""))

    engine = cast(Cluster, TakenOver(cluster, verb))
    await Deletion(cluster, finalizers=RESOURCES, may_delete=is_foreign, engine=engine).finish()
    assert "a" in await standing(cluster)


async def test_object_modified_during_its_deletion_is_still_deleted(cluster: Cluster) -> None:
    await Stage(cluster, [config("a")]).finish()
    engine = cast(Cluster, TakenOver(cluster, "delete"))
    await Deletion(cluster, finalizers=RESOURCES, engine=engine).step()
    assert "a" not in await standing(cluster)


async def test_self_managed_application_does_not_wait_for_its_own_deletion(cluster: Cluster) -> None:
    deletion = Deletion(cluster, finalizers=RESOURCES)
    itself = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "demo"}}
    answer = await advance_deletion(
        deletion.app, {deletion.app.key: itself}, [], cluster=cluster, assess_all=judge,
        find_refusal=lambda _: "", find_hook_refusal=lambda _: "",
    )  # fmt: skip
    assert answer == DeletionStep(())


class Recorder:
    """Records the propagation policy of each deletion."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.policies: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def delete(self, key: ResourceKey, *, propagation: Propagation, **more: Any) -> None:
        self.policies.append(propagation.value)
        await self._cluster.delete(key, propagation=propagation, **more)


@pytest.mark.parametrize(
    ("word", "policy"), [("", "Foreground"), ("/foreground", "Foreground"), ("/background", "Background")]
)
async def test_deletion_propagation_policy_follows_the_finalizer(cluster: Cluster, word: str, policy: str) -> None:
    await Stage(cluster, [config("a")]).finish()
    recorder = Recorder(cluster)
    await Deletion(cluster, finalizers=(RESOURCES[0] + word,), engine=cast(Cluster, recorder)).finish()
    assert recorder.policies == [policy]


@pytest.mark.parametrize("word", ["", "foreground", "background", "orphan"])
async def test_prune_propagation_policy_follows_the_sync_option(cluster: Cluster, word: str) -> None:
    stage = Stage(cluster, [config("a"), config("old")], options=(f"PrunePropagationPolicy={word}",) if word else ())
    await stage.finish()
    recorder = Recorder(cluster)
    await stage.again(config("a"), request=SyncRequest(prune=True), engine=cast(Cluster, recorder)).finish()
    assert recorder.policies == [(word or "foreground").capitalize()]


async def test_delete_confirm_waits_for_the_approval_annotation(cluster: Cluster) -> None:
    await Stage(cluster, [config("a", options="Delete=confirm"), config("b")]).finish()
    deletion = Deletion(cluster, finalizers=RESOURCES)
    answer = await deletion.step()
    assert answer.message == "waiting for deletion confirmation of /ConfigMap/a" and answer.wait is None
    deletion.annotations = {names.DELETION_APPROVED: "2026-01-01T00:00:00Z"}
    await deletion.finish()
    assert "a" not in await standing(cluster)


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
    deletion = Deletion(cluster, hooks, finalizers=ALL[:2])
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


@pytest.mark.parametrize("finalizers", [ALL, ALL[3:]])
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
    deletion = Deletion(cluster, [hook], finalizers=ALL[4:], may_run_hook=lambda _: "not permitted")
    await deletion.finish()
    assert await standing(cluster, JOBS) == ["theirs"]


async def test_hook_finalizers_are_added_and_removed_with_the_hooks() -> None:
    app = read_application({"metadata": {"name": "a", "finalizers": ["mine", *ALL[3:]]}, "spec": {}})
    hooks = [job("before", hook="PreDelete"), config("a")]
    assert compute_finalizers(app, hooks) == ("mine", *ALL[:2])
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
