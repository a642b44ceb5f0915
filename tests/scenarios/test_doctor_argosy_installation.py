"""`argosy doctor` for an installation of argosy itself: missing argocd-cm, leader Lease and member Leases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from argosy.gitops.application_client.control_namespace import LEADER_LEASE_NAME
from argosy.kube.controller.sharding.member_lease_format import build_lease
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.app_commands import Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", CONTROL, "argocd-cm")
LONE = ResourceKey("coordination.k8s.io", "Lease", CONTROL, LEADER_LEASE_NAME)


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as opened_scene:
        yield opened_scene


def lease(holder: str, ago: float, lasts: float = 15) -> Manifest:
    """Build the leader Lease that a single controller leaves behind."""
    renewed = f"{datetime.now(UTC) - timedelta(seconds=ago):%Y-%m-%dT%H:%M:%S.%f}Z"
    metadata = {"name": LONE.name, "namespace": CONTROL}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": round(lasts), "renewTime": renewed}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.mark.tier("all")
async def test_missing_argocd_cm_means_defaults_without_argo_cd(desk: Scene) -> None:
    await desk.cluster.delete(SETTINGS)
    await desk.cluster.create(lease("me", 1.0, HANG_SECONDS))
    result = await desk.argosy("doctor")
    head = result.out.splitlines()[0]
    assert result.code == 0, result
    assert f"ok no argocd-cm in {CONTROL}, and no Argo CD: defaults apply" in head and "ok argosy delivers" in head


async def test_missing_argocd_cm_is_an_error_with_argo_cd(desk: Scene) -> None:
    await desk.cluster.delete(SETTINGS)
    labels = {"app.kubernetes.io/name": "argocd-application-controller"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "argocd:v3.2.4"}]}}
    spec = {"serviceName": "x", "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "ours-application-controller", "namespace": CONTROL, "labels": labels}
    await desk.cluster.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
    result = await desk.argosy("doctor")
    assert result.code == 1 and f"there is no argocd-cm in {CONTROL}, and Argo CD needs one" in result.out, result


@pytest.mark.parametrize("left", ["", "killed"])
@pytest.mark.tier("all")
async def test_member_lease_counts_despite_an_old_leader_lease(desk: Scene, left: str) -> None:
    await desk.cluster.create(lease(left, 422.0))
    await desk.cluster.create(build_lease(CONTROL, "one", HANG_SECONDS, datetime.now(UTC)))
    result = await desk.argosy("doctor")
    assert result.code == 0 and "ok argosy delivers" in result.out, result
    await desk.cluster.delete(ResourceKey(*LONE[:3], "argosy-member-one"))
    doctor_result = await desk.argosy("doctor")
    expected = "argosy's controller gave its last sign 7m" if left else "no engine delivers: no argosy controller"
    assert expected in doctor_result.out, doctor_result
