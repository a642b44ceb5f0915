"""A refresh that is asked for while a hard one waits: that stays hard, and is told of once more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from argosy.annotations import REFRESH, REFRESH_TIMESTAMP
from argosy.gitops.application_client import refresh_requests, small_changes
from argosy.gitops.application_client.client import Desk
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from support.engine import furnish

pytestmark = pytest.mark.anyio
WEB = ResourceKey("argoproj.io", "Application", "argocd", "web")


async def by_a_push(desk: Desk) -> None:
    asked = refresh_requests.Refreshes()
    assert asked.ask(desk.cluster, [WEB]) == 1
    await asked.done()


async def by_somebody(desk: Desk) -> None:
    await small_changes.ask_refresh(desk, await desk.find("web"), is_hard=False)


@pytest.mark.parametrize("ask", [by_a_push, by_somebody])
async def test_a_hard_refresh_that_waits_stays_hard(cluster: Cluster, ask: Callable[[Desk], Awaitable[None]]) -> None:
    await furnish(cluster, "argocd")
    spec = {"project": "default", "source": {"repoURL": "https://git.example.com/app.git", "path": "app"}}
    metadata = {"name": "web", "namespace": "argocd", "annotations": {REFRESH: "hard", REFRESH_TIMESTAMP: "before"}}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    await cluster.create({**kind, "metadata": metadata, "spec": {**spec, "destination": {"name": "in-cluster"}}})
    desk = Desk(cluster, "here", "argocd", "argocd", signer="ann")
    await ask(desk)
    found = (await desk.find("web")).annotations
    assert found[REFRESH] == "hard" and found[REFRESH_TIMESTAMP] != "before"
    await cluster.patch(WEB, {"metadata": {"annotations": {REFRESH: None}}})
    await ask(desk)
    assert (await desk.find("web")).annotations[REFRESH] == "normal"
