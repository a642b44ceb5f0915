"""Application status on every server: it is stored as written, and an unchanged status needs no second write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import Conflict
from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    ResourceResult,
    SyncRequest,
    read_application,
)
from argosy.gitops.application.step_results import Assessment, HealthStatus, SyncStatus
from argosy.gitops.status import application_event_manifests
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.history import append_deployment
from argosy.gitops.status.operation_state_json_writer import request_to_wire
from argosy.gitops.status.resources import ResourceStatus
from argosy.gitops.status.status_builder import StatusReport, build_status, build_status_patch, is_comparison_outdated
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from support.contract_manifests import eventually

pytestmark = pytest.mark.anyio

NAME = "applications.argoproj.io"
STARTED, FINISHED, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:06Z"
SOURCE = {"repoURL": "https://git.example/models", "helm": {"valuesObject": {"a": None, "b": [{"c": None, "d": 1.0}]}}}
WEB = ResourceKey("apps", "Deployment", "ml", "web")


@pytest.fixture
async def furnished(own_cluster: Cluster) -> AsyncIterator[Cluster]:
    """A cluster with the Application CRD for the duration of one test."""
    cluster = own_cluster
    key = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", NAME)
    await cluster.create(load_definition(NAME))

    async def served() -> bool:
        return GroupKind("argoproj.io", "Application") in await cluster.kinds()

    async def gone() -> bool:
        return await cluster.get(key) is None

    try:
        await eventually(served)
        yield cluster
    finally:
        await cluster.delete(key)
        await eventually(gone)  # a real server deletes all objects first and accepts no new CRD until then


async def create_application(cluster: Cluster, namespace: str, **spec: Any) -> Manifest:
    return await cluster.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "models", "namespace": namespace},
            "spec": {"project": "default", "destination": {"namespace": "ml"}, **spec},
        }
    )


def synced(app: Application) -> OperationState:
    sources = tuple(source.wire for source in app.sources)
    revisions = tuple(map(str, range(len(sources)))) if app.has_many_sources else ()
    return OperationState(
        OperationRequest(SyncRequest(runs_hooks=False), username="ann"),
        OperationPhase.SUCCEEDED,
        message="successfully synced",
        started=STARTED,
        finished=FINISHED,
        has_result=True,
        revision="" if revisions else "abc",
        revisions=revisions,
        sources=sources,
        results=(ResourceResult(WEB, "v1", images=("nginx:1",)),),
    )


def report(app: Application, state: OperationState) -> StatusReport:
    return StatusReport(
        app=app,
        now=NOW,
        state=state,
        status=SyncStatus.OUT_OF_SYNC,
        revisions=state.revisions or (state.revision,),
        tools=("Helm",) * len(app.sources),
        resources=[ResourceStatus(WEB, "v1", SyncStatus.OUT_OF_SYNC, Assessment(HealthStatus.DEGRADED, "no"), wave=-1)],
        persists_resource_health=True,
        health=Assessment(HealthStatus.DEGRADED, "Caused by apps/Deployment:ml/web"),
        conditions=[AppCondition(ConditionType.SYNC_ERROR, "failed")],
        evaluated_types=frozenset(ConditionType),
        history=append_deployment([], state, app.history_limit),
        summary={"images": ["nginx:1"], "externalURLs": ["https://a.example/"]},
        controller_namespace="argocd",
    )


@pytest.mark.parametrize("spec", [{"source": SOURCE}, {"sources": [SOURCE, SOURCE]}], ids=["one source", "many"])
async def test_application_status_is_stored_as_written_and_unchanged_status_gives_no_patch(
    furnished: Cluster, namespace: str, spec: dict[str, Any]
) -> None:
    app = read_application(await create_application(furnished, namespace, **spec))
    state = synced(app)
    status = build_status(report(app, state))
    stored = await furnished.patch(app.key, {"status": build_status_patch(app.status, status)})
    assert stored["status"] == status
    again = read_application(stored)
    assert not is_comparison_outdated(again)
    assert build_status_patch(again.status, build_status(report(again, again.state or state))) is None


async def test_operation_request_is_stored_as_written(furnished: Cluster, namespace: str) -> None:
    app = read_application(await create_application(furnished, namespace, source=SOURCE))
    operation = OperationRequest(SyncRequest(revision="abc", resources=(WEB,), prune=True), is_automated=True)
    stored = await furnished.patch(app.key, {"operation": request_to_wire(operation)})
    assert stored["operation"] == request_to_wire(operation)


async def test_operation_completed_event_can_be_created_only_once(furnished: Cluster, namespace: str) -> None:
    app = read_application(await create_application(furnished, namespace, source=SOURCE))
    event = application_event_manifests.operation_completed_event(app, synced(app))
    await furnished.create(event)
    with pytest.raises(Conflict):
        await furnished.create(event)
    stored_event = await furnished.get(key_of(event))
    assert stored_event is not None and stored_event["message"] == "Sync operation to abc succeeded"
    assert stored_event["metadata"]["annotations"]["user"] == "ann"
