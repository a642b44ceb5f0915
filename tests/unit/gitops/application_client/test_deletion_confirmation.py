"""Confirmation of a deletion applies only to the operation that the user saw."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.annotations import DELETION_APPROVED
from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.application_actions import confirm_deletion
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.sync.effective_apply_and_prune_options import is_deletion_approved
from argosy.kube.client import Cluster
from support.engine import furnish

pytestmark = pytest.mark.anyio
ONE, TWO = "2026-11-15T11:59:00Z", "2026-11-15T11:59:01Z"


def running(since: str, phase: str = "Running") -> dict[str, Any]:
    return {"operationState": {"operation": {"sync": {}}, "phase": phase, "startedAt": since}}


@pytest.fixture
async def desk(cluster: Cluster) -> ApplicationService:
    await furnish(cluster, "argocd")
    service = ApplicationService(cluster, "here", "argocd", "argocd", acting_user="ann")
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    source = {"repoURL": "https://git.example.com/app.git", "path": "app"}
    spec = {"project": "default", "source": source, "destination": {"name": "in-cluster"}}
    metadata = {"name": "web", "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    await cluster.create({**kind, "metadata": metadata, "spec": spec, "status": running(ONE)})
    return service


async def changed(desk: ApplicationService, status: dict[str, Any]) -> Application:
    await desk.cluster.patch((await desk.load_application("web")).key, {"status": status})
    return await desk.load_application("web")


async def test_confirmation_covers_the_seen_operation_and_no_later_one(desk: ApplicationService) -> None:
    after = await confirm_deletion(desk, await desk.load_application("web"), ONE)
    assert is_deletion_approved(after, ONE) and not is_deletion_approved(after, TWO)


async def test_confirmation_is_rejected_if_the_seen_operation_is_not_running(desk: ApplicationService) -> None:
    for status in (running(TWO), running(ONE, "Succeeded")):
        now = await changed(desk, status)
        with pytest.raises(UserError, match="check again: argosy app get web"):
            await confirm_deletion(desk, now, ONE)
    assert DELETION_APPROVED not in (await desk.load_application("web")).annotations


async def test_confirmation_of_an_operation_does_not_confirm_app_deletion(desk: ApplicationService) -> None:
    await desk.cluster.delete((await desk.load_application("web")).key)
    now = await desk.load_application("web")
    with pytest.raises(UserError):
        await confirm_deletion(desk, now, ONE)
    assert is_deletion_approved(await confirm_deletion(desk, now), now.deletion_timestamp)


async def test_confirmation_is_rejected_if_an_operation_started_since_the_read(desk: ApplicationService) -> None:
    """Like a command, which does not state the operation that the user saw."""
    before = await desk.load_application("web")
    await changed(desk, running(TWO))
    with pytest.raises(UserError):
        await confirm_deletion(desk, before)
    assert DELETION_APPROVED not in (await desk.load_application("web")).annotations
