"""Client-side patches omit changes without effect: other spellings of a value, and defaults set by the server."""

from __future__ import annotations

import copy

import pytest

from argosy.gitops.sync.client_side_apply_patch_builder import add_last_applied, build_apply_patch
from argosy.kube.objects import Manifest, read_manifests
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.paths import TESTS

pytestmark = pytest.mark.anyio
KINDS = (TESTS / "data/comparing/kinds.yaml").read_text()


async def lives(kind: str) -> tuple[Manifest, Manifest]:
    desired = next(manifest for manifest in read_manifests(KINDS) if manifest["kind"] == kind)
    desired["metadata"]["namespace"] = "default"
    async with EmbeddedCluster.open() as cluster:
        return desired, await cluster.create(add_last_applied(desired))


@pytest.mark.parametrize(
    "kind", ["StatefulSet", "Deployment", "CronJob", "PersistentVolumeClaim", "LimitRange", "ResourceQuota"]
)
async def test_patch_of_an_unchanged_object_is_empty(kind: str) -> None:
    desired, live = await lives(kind)
    assert build_apply_patch(add_last_applied(desired), live) == {}


async def test_small_changes_are_in_the_patch() -> None:
    desired, live = await lives("StatefulSet")
    live = copy.deepcopy(live)
    live["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] = "Block"
    assert "volumeClaimTemplates" in build_apply_patch(add_last_applied(desired), live)["spec"]
    desired_manifest, live = await lives("Deployment")
    live = copy.deepcopy(live)
    live["spec"]["template"]["spec"]["containers"][0]["args"] = ["--fast"]
    (container,) = build_apply_patch(add_last_applied(desired_manifest), live)["spec"]["template"]["spec"]["containers"]
    assert container["args"] == []
    live["spec"]["template"]["spec"]["containers"][0]["args"] = []
    desired_manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1501m"
    assert build_apply_patch(add_last_applied(desired_manifest), live)
