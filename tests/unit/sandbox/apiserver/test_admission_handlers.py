"""Admission handlers of an add-on on the embedded cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import Forbidden, UserError
from argosy.kube.client import AdmissionHandler
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
KEY = ResourceKey("", "ConfigMap", "default", "it")


def completed(new: Manifest, old: Manifest | None) -> Manifest:
    data = new.get("data") or {}
    if data.get("wrong"):
        raise UserError("wrong is not allowed")
    return {**new, "data": {"added": "by the webhook", **data}}


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as embedded_cluster:
        with embedded_cluster.register_admission(
            [AdmissionHandler(CONFIG_MAP, "it.example.com", "example-webhook", completed)]
        ):
            yield embedded_cluster


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "default"}, "data": data}


def owners(live: Manifest, field: str) -> list[str]:
    return [entry["manager"] for entry in live["metadata"]["managedFields"] if f"f:{field}'" in str(entry["fieldsV1"])]


async def test_field_set_by_admission_is_stored_and_owned_by_its_manager(cluster: EmbeddedCluster) -> None:
    live = await cluster.create(config_map(mine="1"))
    assert live["data"] == {"added": "by the webhook", "mine": "1"}
    assert owners(live, "added") == ["example-webhook"] and owners(live, "mine") == ["argosy"]


async def test_admission_also_completes_applied_objects(cluster: EmbeddedCluster) -> None:
    live = await cluster.apply(config_map(mine="1"), manager="me")
    assert live["data"]["added"] == "by the webhook"
    assert owners(live, "added") == ["example-webhook"] and owners(live, "mine") == ["me"]
    again = await cluster.apply(config_map(mine="1"), manager="me")
    assert again["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


async def test_removed_field_is_set_again_by_admission(cluster: EmbeddedCluster) -> None:
    await cluster.create(config_map(mine="1"))
    live = await cluster.patch(KEY, {"data": {"added": None}})
    assert live["data"]["added"] == "by the webhook"


async def test_dry_run_shows_fields_set_by_admission(cluster: EmbeddedCluster) -> None:
    preview = await cluster.create(config_map(mine="1"), dry_run=True)
    assert preview["data"]["added"] == "by the webhook"
    assert await cluster.get(KEY) is None


async def test_denied_object_is_not_stored_and_error_names_the_webhook(cluster: EmbeddedCluster) -> None:
    with pytest.raises(Forbidden) as refused:
        await cluster.create(config_map(wrong="1"))
    assert refused.value.message == 'admission webhook "it.example.com" denied the request: wrong is not allowed'
    assert await cluster.get(KEY) is None


async def test_admission_handlers_run_until_they_are_unregistered(cluster: EmbeddedCluster) -> None:
    def marked(new: Manifest, old: Manifest | None) -> Manifest:
        return {**new, "data": {**(new.get("data") or {}), "second": "yes"}}

    with cluster.register_admission([AdmissionHandler(CONFIG_MAP, "second.example.com", "second-webhook", marked)]):
        live = await cluster.create(config_map(mine="1"))
    assert live["data"] == {"added": "by the webhook", "mine": "1", "second": "yes"}
    assert owners(live, "second") == ["second-webhook"]
    again = await cluster.create({**config_map(), "metadata": {"name": "other", "namespace": "default"}})
    assert again["data"] == {"added": "by the webhook"}


async def test_admission_does_not_change_other_kinds(cluster: EmbeddedCluster) -> None:
    secret = {**config_map(), "kind": "Secret"}
    live = await cluster.create({name: value for name, value in secret.items() if name != "data"})
    assert "data" not in live
