"""Tests that a normal refresh keeps a pending hard refresh hard and renews its timestamp."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from argosy.annotations import REFRESH, REFRESH_TIMESTAMP
from argosy.gitops.application_client import application_actions, rate_limited_refresh_queue
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from support.engine import furnish

pytestmark = pytest.mark.anyio
WEB = ResourceKey("argoproj.io", "Application", "argocd", "web")


async def by_a_push(desk: ApplicationService) -> None:
    queue = rate_limited_refresh_queue.RefreshQueue()
    assert queue.enqueue(desk.cluster, [WEB]) == 1
    await queue.wait_until_empty()


async def by_somebody(desk: ApplicationService) -> None:
    await application_actions.request_refresh(desk, await desk.load_application("web"), is_hard=False)


@pytest.mark.parametrize("ask", [by_a_push, by_somebody])
async def test_pending_hard_refresh_stays_hard(
    cluster: Cluster, ask: Callable[[ApplicationService], Awaitable[None]]
) -> None:
    await furnish(cluster, "argocd")
    spec = {"project": "default", "source": {"repoURL": "https://git.example.com/app.git", "path": "app"}}
    metadata = {"name": "web", "namespace": "argocd", "annotations": {REFRESH: "hard", REFRESH_TIMESTAMP: "before"}}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    await cluster.create({**kind, "metadata": metadata, "spec": {**spec, "destination": {"name": "in-cluster"}}})
    desk = ApplicationService(cluster, "here", "argocd", "argocd", acting_user="ann")
    await ask(desk)
    app_annotations = (await desk.load_application("web")).annotations
    assert app_annotations[REFRESH] == "hard" and app_annotations[REFRESH_TIMESTAMP] != "before"
    await cluster.patch(WEB, {"metadata": {"annotations": {REFRESH: None}}})
    await ask(desk)
    assert (await desk.load_application("web")).annotations[REFRESH] == "normal"
