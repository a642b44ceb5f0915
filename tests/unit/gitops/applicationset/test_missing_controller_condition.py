"""Tests the status condition of an ApplicationSet that no controller expands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.annotations import SIMULATED
from argosy.gitops.applicationset.missing_controller_condition_writer import WORKLOAD_KINDS, ApplicationSetReporter
from argosy.gitops.policy.applicationset_controller_detection import NO_CONTROLLER_REASON
from argosy.kube.client import Cluster
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import APPLICATION_SET
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ResourceKey(*APPLICATION_SET, "argocd", "teams")
ARGOCD = {
    "app.kubernetes.io/name": "argocd-applicationset-controller",
    "app.kubernetes.io/component": "applicationset-controller",
    "app.kubernetes.io/part-of": "argocd",
}
OPERATED = {"app.kubernetes.io/name": "openshift-gitops-applicationset-controller"}


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create(load_definition("applicationsets.argoproj.io"))
        for name in ("argocd", "elsewhere"):
            await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield opened


async def create_set(cluster: Cluster, namespace: str = "argocd") -> None:
    source = {"repoURL": "https://git.example.com/x.git", "path": "{{path}}"}
    spec = {"project": "default", "source": source, "destination": {"namespace": "ml"}}
    template = {"metadata": {"name": "{{path}}"}, "spec": spec}
    await cluster.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "ApplicationSet",
            "metadata": {"name": "teams", "namespace": namespace},
            "spec": {"generators": [{"list": {"elements": []}}], "template": template},
        }
    )


async def create_controller(cluster: Cluster, labels: dict[str, str], **annotations: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "argocd:v3"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": "x-applicationset-controller", "namespace": "argocd", "labels": labels,
                "annotations": annotations}  # fmt: skip
    await cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


async def read_cache(cluster: Cluster) -> InformerCache:
    cache = InformerCache()
    for kind in (APPLICATION_SET, *WORKLOAD_KINDS):
        for manifest in (await cluster.list(kind)).items:
            cache.put({**manifest, "kind": kind.kind})
    return cache


async def reported(
    cluster: Cluster, unread: tuple[GroupKind, ...] = (), cache: InformerCache | None = None
) -> list[dict[str, Any]]:
    """Return the conditions after one report; `cache` is the state read before."""
    cache = cache or await read_cache(cluster)
    reporter = ApplicationSetReporter(cluster, cache, "argocd", lambda: NOW, lambda kind: kind not in unread)
    await reporter.report()
    application_set: Manifest = await cluster.get(KEY) or {}
    conditions: list[dict[str, Any]] = (application_set.get("status") or {}).get("conditions") or []
    return conditions


async def test_missing_controller_is_reported_as_condition(cluster: Cluster) -> None:
    await create_set(cluster)
    (condition,) = await reported(cluster)
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "ErrorOccurred",
        "True",
        NO_CONTROLLER_REASON,
    )
    assert condition["message"].startswith("no controller expands this ApplicationSet")
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


async def test_condition_is_written_only_once(cluster: Cluster) -> None:
    await create_set(cluster)
    await reported(cluster)
    before = await cluster.get(KEY)
    await reported(cluster)
    assert await cluster.get(KEY) == before


@pytest.mark.parametrize("labels", [ARGOCD, OPERATED])
async def test_no_condition_if_an_argo_cd_controller_exists(cluster: Cluster, labels: dict[str, str]) -> None:
    await create_set(cluster)
    await create_controller(cluster, labels)
    assert await reported(cluster) == []


async def test_simulated_controller_does_not_count(cluster: Cluster) -> None:
    await create_set(cluster)
    await create_controller(cluster, ARGOCD, **{SIMULATED: "argocd_operator"})
    assert [condition["reason"] for condition in await reported(cluster)] == [NO_CONTROLLER_REASON]


async def test_status_of_another_controller_is_never_changed(cluster: Cluster) -> None:
    """That controller may run in another cluster."""
    await create_set(cluster)
    condition = {"type": "ResourcesUpToDate", "status": "True", "reason": "ApplicationSetUpToDate", "message": "well",
              "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    await cluster.patch(KEY, {"status": {"conditions": [condition]}}, subresource="status")
    assert await reported(cluster) == [condition]


async def test_status_written_by_a_controller_since_the_last_read_is_kept(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await create_set(cluster)
    cache = await read_cache(cluster)
    condition = {"type": "ResourcesUpToDate", "status": "True", "reason": "ApplicationSetUpToDate", "message": "well",
              "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    await cluster.patch(KEY, {"status": {"conditions": [condition]}}, subresource="status")
    assert await reported(cluster, cache=cache) == [condition]
    assert not caplog.records  # retried on the next report, so nothing is logged
    assert await reported(cluster) == [condition]


async def test_condition_is_written_on_the_next_report_after_a_conflict(cluster: Cluster) -> None:
    await create_set(cluster)
    cache = await read_cache(cluster)
    await cluster.patch(KEY, {"metadata": {"labels": {"team": "ml"}}})
    assert await reported(cluster, cache=cache) == []
    assert [condition["reason"] for condition in await reported(cluster)] == [NO_CONTROLLER_REASON]


@pytest.mark.parametrize("kind", [APPLICATION_SET, *WORKLOAD_KINDS])
async def test_no_condition_if_a_required_kind_cannot_be_read(cluster: Cluster, kind: GroupKind) -> None:
    await create_set(cluster)
    assert await reported(cluster, unread=(kind,)) == []


async def test_application_set_in_another_namespace_is_ignored(cluster: Cluster) -> None:
    await create_set(cluster, "elsewhere")
    await reported(cluster)
    application_set = await cluster.get(KEY._replace(namespace="elsewhere"))
    assert application_set is not None and "status" not in application_set
