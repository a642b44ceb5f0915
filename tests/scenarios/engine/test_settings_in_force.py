"""Settings that come, go, and cannot be read while the engine runs."""

from __future__ import annotations

import base64

import pytest

from argosy.model.names import ResourceKey
from support.engine import CONTROL, Room, conditions, config_map
from support.sync_operations import job
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
AUTOMATED = {"automated": {}}
BROKEN_CHECK = {"resource.customizations.health.ConfigMap": "this is no Lua"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout.reconciliation", "soon"),
        pytest.param("application.resourceTrackingMethod", "magic", marks=IN_TEST_ALL),
        pytest.param("resource.exclusions", "{no: list}", marks=IN_TEST_ALL),
        pytest.param("resource.compareoptions", "[1", marks=IN_TEST_ALL),
    ],
)
async def test_a_setting_that_cannot_be_read_is_a_condition_and_stops_nothing(
    room: Room, name: str, value: str
) -> None:
    room.repository.push(ONE)
    await room.configure({name: value})
    await room.deliver(syncPolicy=AUTOMATED)
    said = await room.until_condition("UnknownError")
    assert name in said
    await room.until_synced()
    await room.configure({name: None})
    await room.until(lambda status: not conditions(status, "UnknownError"))


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        pytest.param("argocd-rbac-cm", "policy.csv", "p, role:developer, applications", marks=IN_TEST_ALL),
        ("argosy-cm", "sync.massPrune", "never"),
    ],
)
async def test_a_setting_elsewhere_that_cannot_be_read_is_a_condition_too(
    room: Room, place: str, name: str, value: str
) -> None:
    room.repository.push(ONE)
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": place, "namespace": CONTROL}}
    if await room.get("ConfigMap", place, CONTROL) is None:
        await room.cluster.create({**kind, "data": {}})
    await room.configure({name: value}, place)
    await room.deliver(syncPolicy=AUTOMATED)
    said = await room.until_condition("UnknownError")
    assert place in said and name in said
    await room.until_synced()
    await room.configure({name: None}, place)
    await room.until(lambda status: not conditions(status, "UnknownError"))


async def test_where_a_cluster_is_limited_to_namespaces_nothing_else_is_managed(room: Room) -> None:
    room.repository.push(ONE)
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    near = {"server": "https://kubernetes.default.svc", "name": "near", "namespaces": "other"}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in near.items()}
    metadata = {"name": "near", "namespace": CONTROL, "labels": labels}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    await room.deliver(syncPolicy=AUTOMATED)
    said = await room.until_condition("ComparisonError")
    assert said == 'Failed to load live state: namespace "ml" for ConfigMap "settings" is not managed'
    assert await room.get("ConfigMap", "settings") is None
    changed = {"data": {"namespaces": base64.b64encode(b"ml,other").decode()}}
    await room.cluster.patch(ResourceKey("", "Secret", CONTROL, "near"), changed)
    await room.until_synced()


async def test_a_check_that_is_broken_is_told_and_blocks_no_sync(room: Room) -> None:
    room.repository.push(ONE)
    await room.configure(BROKEN_CHECK)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    assert await room.get("ConfigMap", "settings") is not None
    app = await room.until(lambda status: conditions(status, "UnknownError"))
    assert app["status"]["health"]["status"] == "Unknown"
    await room.configure(dict.fromkeys(BROKEN_CHECK))
    app = await room.until(lambda status: "conditions" not in status)
    assert app["status"]["health"]["status"] == "Healthy"


async def test_the_last_good_value_of_a_setting_holds(room: Room) -> None:
    room.repository.push(ONE)
    await room.configure({"application.resourceTrackingMethod": "label"})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.configure({"application.resourceTrackingMethod": "magic"})
    await room.until_condition("UnknownError")
    await room.sync()
    await room.until_synced()
    metadata = (await room.get("ConfigMap", "settings") or {})["metadata"]
    assert metadata["labels"]["app.kubernetes.io/instance"] == "models"


async def test_a_sync_whose_time_is_over_is_terminated_and_not_tried_again(room: Room) -> None:
    parameters = {"name": "argocd-cmd-params-cm", "namespace": CONTROL}
    data = {"controller.sync.timeout.seconds": "60"}
    await room.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": parameters, "data": data})
    hook = job("check", hook="PreSync", namespace="")
    room.repository.push({**ONE, "app/hook.yaml": hook})
    await room.deliver()
    await room.patch_app({"operation": {"sync": {}, "retry": {"limit": 3}}})
    words = "waiting for completion of hook batch/Job/check"
    await room.until(lambda status: status["operationState"]["message"] == words)
    room.clock.leap(61)
    state = (await room.until_over())["status"]["operationState"]
    said = "Operation terminated, triggered by controller sync timeout"
    assert (state["phase"], state["message"]) == ("Failed", said)
    assert "retryCount" not in state and await room.get("batch/Job", "check") is None
    assert await room.get("ConfigMap", "settings") is None
