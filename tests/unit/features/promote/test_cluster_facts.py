"""Cluster facts about environments, read from an embedded cluster: Applications, notebook runs and the current user."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.features.promote.environment_cluster_state import (
    EnvironmentClusterState,
    _fetch_cluster_state,
    parse_timestamp,
)
from argosy.features.promote.promotion_pipeline import PromotionPipeline
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, PromotionGate
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
WAY = PromotionPipeline(
    (
        DeliveryEnvironment("dev", "web-dev", "ns-dev", "dev"),
        DeliveryEnvironment(
            "staging", "web-staging", "ns-staging", "staging", after="dev", gates=(PromotionGate("notebook", "eval"),)
        ),
    ),
    control_namespace="argocd",
)
SPEC = {"project": "default", "source": {"repoURL": "https://e.com/a.git", "path": "dev"}, "destination": {"name": "x"}}


def build_manifest(kind: str, api: str, name: str, namespace: str = "", **more: Any) -> Any:
    namespace_field = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **namespace_field}, **more}


@pytest.fixture
async def cluster(anyio_backend: str) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as opened:
        for name in ("argocd", "ns-dev"):
            await opened.create(build_manifest("Namespace", "v1", name))
        yield opened


async def test_missing_crds_give_an_unknown_state_without_an_error(cluster: EmbeddedCluster) -> None:
    state = await _fetch_cluster_state(ApplicationService(cluster, "here", "argocd", "argocd"), WAY)
    assert state.apps == {"dev": None, "staging": None} and state.notebooks == {("dev", "eval"): None}


async def test_applications_notebook_runs_and_the_actor_are_read(cluster: EmbeddedCluster) -> None:
    for name in ("applications.argoproj.io", "notebookvalidationjobs.mlops.mlops.dev"):
        await cluster.create(load_definition(name))
    await cluster.create(build_manifest("Application", "argoproj.io/v1alpha1", "web-dev", "argocd", spec=SPEC))
    notebook = {"git": {"url": "https://e.com/a.git", "ref": "main"}, "path": "a.ipynb"}
    spec = {"notebook": notebook, "podConfig": {"containerImage": "a"}}
    await cluster.create(
        build_manifest("NotebookValidationJob", "mlops.mlops.dev/v1alpha1", "eval", "ns-dev", spec=spec)
    )
    key = ResourceKey("mlops.mlops.dev", "NotebookValidationJob", "ns-dev", "eval")
    status = {"phase": "Succeeded", "completionTime": "2026-05-04T12:00:00Z"}
    await cluster.patch(key, {"status": status}, subresource="status")
    state: EnvironmentClusterState = await _fetch_cluster_state(
        ApplicationService(cluster, "here", "argocd", "argocd"), WAY
    )
    app, ran = state.apps["dev"], state.notebooks["dev", "eval"]
    assert app is not None and app["spec"]["source"]["path"] == "dev" and state.apps["staging"] is None
    assert (
        ran is not None and ran.phase == "Succeeded" and ran.finished_at == parse_timestamp("2026-05-04T12:00:00+00:00")
    )
    assert state.actor is not None and state.actor.known_by == "cluster" and state.actor.name


async def test_notebook_status_of_an_older_spec_counts_as_not_run(cluster: EmbeddedCluster) -> None:
    await cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    notebook = {"git": {"url": "https://e.com/a.git", "ref": "main"}, "path": "a.ipynb"}
    spec = {"notebook": notebook, "podConfig": {"containerImage": "a"}}
    await cluster.create(
        build_manifest("NotebookValidationJob", "mlops.mlops.dev/v1alpha1", "eval", "ns-dev", spec=spec)
    )
    key = ResourceKey("mlops.mlops.dev", "NotebookValidationJob", "ns-dev", "eval")
    status = {"phase": "Succeeded", "completionTime": "2026-05-04T12:00:00Z", "observedGeneration": 1}
    await cluster.patch(key, {"status": status}, subresource="status")
    desk = ApplicationService(cluster, "here", "argocd", "argocd")
    ran = (await _fetch_cluster_state(desk, WAY)).notebooks["dev", "eval"]
    assert ran is not None and ran.phase == "Succeeded"
    await cluster.patch(key, {"spec": {"notebook": {"path": "b.ipynb"}}})
    ran = (await _fetch_cluster_state(desk, WAY)).notebooks["dev", "eval"]
    assert ran is not None and (ran.phase, ran.finished_at) == ("", None)


async def test_parse_timestamp_returns_none_for_invalid_values() -> None:
    assert parse_timestamp(None) is None and parse_timestamp("soon") is None
