"""Removal of a delivery: dependencies of an Application are kept until the Application is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.features.setup.delivery import desired_manifests
from argosy.features.setup.delivery.cluster_setup_plan import (
    ChangeVerb,
    SetupChange,
    SetupPart,
    SetupPlan,
    SetupRequest,
)
from argosy.features.setup.delivery.removal import execute_removal
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, DeliveryFile, DeliveryRepository
from argosy.kube.client import Cluster
from argosy.kube.controller.object_condition_wait import WaitTimeout
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition

HERE = ArgoCDInstallation("argocd")
DELIVERY = DeliveryFile(
    DeliveryRepository("https://example.com/r.git"), (DeliveryEnvironment("dev", "a-dev", "a-dev", "dev"),)
)
APPLICATION = ResourceKey("argoproj.io", "Application", "argocd", "a-dev")
NAMESPACE = ResourceKey("", "Namespace", "", "a-dev")
FINALIZER = "resources-finalizer.argocd.argoproj.io"
PLAN = SetupPlan(
    HERE,
    (
        SetupChange("dev", SetupPart.APPLICATION, APPLICATION, ChangeVerb.DELETE, {}),
        SetupChange("dev", SetupPart.NAMESPACE, NAMESPACE, ChangeVerb.DELETE, {}),
    ),
)
pytestmark = pytest.mark.anyio


@pytest.fixture
async def set_up(cluster: Cluster) -> AsyncIterator[Cluster]:
    await cluster.apply(load_definition("applications.argoproj.io"), manager="test")
    for name in ("argocd", "a-dev"):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    application: Any = desired_manifests.build_application(DELIVERY, DELIVERY.environments[0], HERE)
    application["metadata"]["finalizers"] = [FINALIZER]
    await cluster.create(application)
    yield cluster


async def test_stuck_application_deletion_stops_the_removal(set_up: Cluster) -> None:
    done: list[str] = []
    with pytest.raises(WaitTimeout, match=rf"Application a-dev is still being deleted after 0.05 s.*{FINALIZER}"):
        await execute_removal(
            set_up, PLAN, SetupRequest(DELIVERY), lambda change, verb: done.append(change.key.name), 0.05
        )
    assert done == []
    assert "deletionTimestamp" not in (await set_up.get(NAMESPACE) or {})["metadata"]
    await set_up.patch(APPLICATION, {"metadata": {"finalizers": None}})
    await execute_removal(set_up, PLAN, SetupRequest(DELIVERY), lambda change, verb: done.append(change.key.kind), 5.0)
    assert done == ["Application", "Namespace"]


async def test_application_deleted_by_someone_else_counts_as_deleted(set_up: Cluster) -> None:
    await set_up.patch(APPLICATION, {"metadata": {"finalizers": None}})
    await set_up.delete(APPLICATION)
    done: list[str] = []
    await execute_removal(set_up, PLAN, SetupRequest(DELIVERY), lambda change, verb: done.append(change.key.kind), 0.0)
    assert done == ["Application", "Namespace"]
