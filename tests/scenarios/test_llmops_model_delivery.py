"""Delivers the folder llmops-via-argocd from Git to served models, with simulated KServe and OpenShift."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application_client.diff_presentation import list_differing_objects
from argosy.gitops.diff import DiffOptions, compare_manifests
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.simulators import make
from support.engine import Room, engine_room, furnish

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parents[2] / "llmops-via-argocd"
OVERLAYS = "llmops-via-argocd/deploy_model/overlays"
STAGING = f"{OVERLAYS}/staging/kustomization.yaml"
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
BY_HAND: dict[str, Any] = {}
KIND = "serving.kserve.io/InferenceService"


def tree() -> dict[str, str]:
    files = (file for file in sorted((FOLDER / "deploy_model").rglob("*.yaml")))
    return {f"llmops-via-argocd/{file.relative_to(FOLDER)}": file.read_text() for file in files}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        await furnish(opened_room.cluster, "llmops-dev", "llmops-staging", "llmops-prod")
        profile = {"health.profile.serving.kserve.io_InferenceService": "strict"}
        await opened_room.configure(profile, "argosy-cm")
        async with run_addons([make("")], opened_room.cluster, on_failure=lambda: None):
            opened_room.repository.push(tree())
            yield opened_room


async def deliver(room: Room, environment: str, namespace: str, policy: dict[str, Any]) -> None:
    there = {"server": "https://kubernetes.default.svc", "namespace": namespace}
    await room.deliver(environment, f"{OVERLAYS}/{environment}", destination=there, syncPolicy=policy)


def read_sync_and_health(status: Manifest) -> tuple[str, str]:
    return str(status["sync"]["status"]), str(status["health"]["status"])


def rows(app: Manifest, word: str) -> list[str]:
    return [resource["kind"] for resource in app["status"]["resources"] if resource.get("status") == word]


async def test_webhook_defaults_are_not_drift_but_a_changed_field_is(room: Room) -> None:
    await deliver(room, "staging", "llmops-staging", BY_HAND)
    await room.until(lambda status: read_sync_and_health(status) == ("OutOfSync", "Missing"), "staging")
    await room.sync("staging")
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "staging")
    live = await room.get(KIND, "staging-qwen25-05b-instruct", "llmops-staging") or {}
    assert live["spec"]["predictor"]["automountServiceAccountToken"] is False
    assert live["spec"]["predictor"]["model"]["name"] == ""
    assert live["status"]["url"] == "https://staging-qwen25-05b-instruct-llmops-staging.apps.argosy.invalid"
    changed = tree()[STAGING].replace('limits/cpu\n        value: "3"', 'limits/cpu\n        value: "4"')
    assert changed != tree()[STAGING]
    room.repository.push({STAGING: changed})
    app = await room.until(lambda status: read_sync_and_health(status) == ("OutOfSync", "Healthy"), "staging")
    assert rows(app, "OutOfSync") == ["InferenceService"]
    await room.sync("staging")
    app = await room.until_synced(name="staging")
    assert len(app["status"]["history"]) == 2
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "staging")


@pytest.mark.tier("all")
async def test_self_heal_reverts_drift_and_keeps_webhook_fields(room: Room) -> None:
    await deliver(room, "dev", "llmops-dev", AUTOMATED)
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "dev")
    name = "dev-qwen25-05b-instruct"
    limits = {"spec": {"predictor": {"model": {"resources": {"limits": {"cpu": "10"}}}}}}
    await room.cluster.patch(ResourceKey(*KIND.split("/"), "llmops-dev", name), limits)
    await room.until(lambda status: status["operationState"]["operation"]["sync"].get("autoHealAttemptsCount"), "dev")
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "dev")
    live = await room.get(KIND, name, "llmops-dev") or {}
    assert live["spec"]["predictor"]["model"]["resources"]["limits"]["cpu"] == "2"
    assert live["spec"]["predictor"]["automountServiceAccountToken"] is False


@pytest.mark.tier("all")
async def test_missing_model_is_degraded_with_reason_and_old_model_stays_loaded(room: Room) -> None:
    await deliver(room, "dev", "llmops-dev", AUTOMATED)
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "dev")
    base = "llmops-via-argocd/deploy_model/base/inferenceservice.yaml"
    broken = re.sub(r"oci://\S+:", "s3://models/does-not-exist/", tree()[base])
    room.repository.push({base: broken})
    await room.until(lambda status: status["health"]["status"] == "Degraded", "dev")
    live = await room.get(KIND, "dev-qwen25-05b-instruct", "llmops-dev") or {}
    (ready,) = [condition for condition in live["status"]["conditions"] if condition["type"] == "Ready"]
    assert "No model found in s3://models/does-not-exist/qwen2.5-0.5b-instruct" in ready["message"]
    assert live["status"]["modelStatus"]["states"]["activeModelState"] == "Loaded"
    room.repository.push({base: tree()[base]})
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "dev")


@pytest.mark.tier("all")
async def test_production_model_reports_two_copies(room: Room) -> None:
    await deliver(room, "production", "llmops-prod", BY_HAND)
    await room.until(lambda status: read_sync_and_health(status) == ("OutOfSync", "Missing"), "production")
    await room.sync("production")
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "production")
    live = await room.get(KIND, "prod-qwen25-05b-instruct", "llmops-prod") or {}
    assert live["status"]["modelStatus"]["copies"]["totalCopies"] == 2


@pytest.mark.tier("all")
async def test_diff_separates_changed_fields_from_webhook_fields(room: Room) -> None:
    await deliver(room, "staging", "llmops-staging", BY_HAND)
    await room.until(lambda status: read_sync_and_health(status) == ("OutOfSync", "Missing"), "staging")
    await room.sync("staging")
    await room.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"), "staging")
    live = await room.get(KIND, "staging-qwen25-05b-instruct", "llmops-staging") or {}
    manifest = json.loads(live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    manifest["spec"]["predictor"]["model"]["resources"]["limits"]["cpu"] = "4"
    (differing_object,) = list_differing_objects(compare_manifests([manifest], {key_of(live): live}, DiffOptions()))
    assert [field.pointer for field in differing_object.fields] == ["/spec/predictor/model/resources/limits/cpu"]
    assert [(field.pointer, field.live, field.manager) for field in differing_object.foreign_fields] == [
        ("/spec/predictor/automountServiceAccountToken", False, "kserve-webhook"),
        ("/spec/predictor/model/name", "", "kserve-webhook"),
    ]
