"""Client-side apply of a manifest whose apiVersion is not the preferred one: fields are changed and removed."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.sync.apply import ApplyRequest, apply_manifest
from argosy.gitops.sync.effective_apply_and_prune_options import ApplyOptions
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio


def autoscaler(**spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }


@pytest.mark.parametrize("reads", [True, False], ids=["read in that version", "read in another"])
async def test_apply_in_an_older_version_changes_one_field_and_removes_another(reads: bool) -> None:
    desired = autoscaler(minReplicas=2, targetCPUUtilizationPercentage=80)
    key = key_of(desired)
    async with EmbeddedCluster.open() as cluster:
        created = (await apply_manifest(ApplyRequest(key, desired, None, ApplyOptions(), ""), cluster)).live
        live = created if reads else await cluster.get(key)
        await apply_manifest(
            ApplyRequest(key, autoscaler(targetCPUUtilizationPercentage=70), live, ApplyOptions(), ""), cluster
        )
        spec = (await cluster.get(key) or {})["spec"]
    assert spec["minReplicas"] == 1  # the default
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
