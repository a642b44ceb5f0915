"""Tests that a stale deletion request spares an Application that was deleted and recreated."""

from __future__ import annotations

import pytest

from argosy.errors import Conflict
from argosy.gitops.application_client import application_actions
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from support.engine import furnish

pytestmark = pytest.mark.anyio
WEB = ResourceKey("argoproj.io", "Application", "argocd", "web")


async def test_recreated_application_is_not_deleted_by_stale_request(cluster: Cluster) -> None:
    await furnish(cluster, "argocd")
    source = {"repoURL": "https://git.example.com/app.git", "path": "app"}
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"project": "default", "source": source, "destination": {"name": "in-cluster"}},
    }  # fmt: skip
    await cluster.create(manifest)
    desk = ApplicationService(cluster, "here", "argocd", "argocd", acting_user="ann")
    before = await desk.load_application("web")
    await cluster.delete(WEB)
    again = await cluster.create(manifest)
    with pytest.raises(Conflict):
        await application_actions.delete_application(desk, before, cascades=False)
    assert await cluster.get(WEB) == again
    await application_actions.delete_application(desk, await desk.load_application("web"), cascades=False)
    assert await cluster.get(WEB) is None
