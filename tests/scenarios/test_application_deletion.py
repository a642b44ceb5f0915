"""Deletion of an Application with its resources and hooks, step by step, and its continuation after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from argosy import annotations as names
from argosy.errors import ArgosyError, ClusterError, TransientError
from argosy.gitops.application import SyncRequest
from argosy.gitops.sync.app_deletion import advance_deletion
from argosy.gitops.sync.deletion_step import DeletionStep
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.application_deletions import ALL_FINALIZERS, Deletion
from support.sync_operations import (
    LISTED,
    NAMESPACE,
    WIDGET,
    Stage,
    config,
    definition,
    judge,
    manifest,
)

JOBS, CONFIGS = LISTED[2], LISTED[0]
RESOURCES = ALL_FINALIZERS[2:3]
DEFINITION = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield opened


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
    deletion = Deletion(cluster, hooks, finalizers=ALL_FINALIZERS[1:3] if hooks else RESOURCES)
    live = await Stage(cluster).live()
    await cluster.delete(DEFINITION)
    for _ in range(6):
        answer = await advance_deletion(
            deletion.app, live, hooks, cluster=cluster, assess_all=judge, checks=deletion.checks,
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
        deletion.app, {deletion.app.key: itself}, [], cluster=cluster, assess_all=judge, checks=deletion.checks,
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
