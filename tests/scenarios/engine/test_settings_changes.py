"""Settings that change, become invalid or are removed while the engine runs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from argosy.features.doctor.service import DoctorOptions, examine_installation
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.application_client.app_state_reader import open_reader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.resource_key import ResourceKey
from support.engine import CONTROL, Room, conditions, config_map, engine_room
from support.sync_operations import job
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
AUTOMATED = {"automated": {}}
BROKEN_CHECK = {"resource.customizations.health.ConfigMap": "this is no Lua"}


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        ("argosy-cm", "fairness.project.budget", "abc"),
        pytest.param("argosy-cm", "sync.massPrune", "never", marks=IN_TEST_ALL),
        pytest.param("argocd-cm", "timeout.reconciliation", "soon", marks=IN_TEST_ALL),
        pytest.param("argocd-cm", "application.resourceTrackingMethod", "magic", marks=IN_TEST_ALL),
        pytest.param("argocd-cm", "resource.compareoptions", "[1", marks=IN_TEST_ALL),
        pytest.param("argocd-rbac-cm", "policy.csv", "p, role:developer, applications", marks=IN_TEST_ALL),
    ],
)
async def test_invalid_setting_gives_one_doctor_finding_and_one_log_line(
    room: Room, caplog: pytest.LogCaptureFixture, place: str, name: str, value: str
) -> None:
    room.repository.push({**ONE, "other/other.yaml": config_map("other", a="one")})
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": place, "namespace": CONTROL}}
    if await room.get("ConfigMap", place, CONTROL) is None:
        await room.cluster.create({**kind, "data": {}})
    await room.configure({name: value}, place)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.deliver("others", "other", syncPolicy=AUTOMATED)
    for app in ("models", "others"):
        await room.until_synced(name=app)
        assert not conditions((await room.settled(app))["status"], "UnknownError")
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "argosy.gitops.reconciler.setting_error_messages"
    ]
    assert len(lines) == 1 and f"{place}: {name}" in lines[0], lines
    [finding] = await unreadable_settings(room)
    assert finding.location.file == f"ConfigMap/{place}" and name in finding.violation.message
    assert f"argosy kubectl edit configmap/{place} -n {CONTROL}" in finding.violation.fix
    await room.configure({name: None}, place)
    assert await unreadable_settings(room) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resource.exclusions", "{no: list}"),
        pytest.param("resource.inclusions", "{no: list}", marks=IN_TEST_ALL),
        pytest.param("globalProjects", "{no: list}", marks=IN_TEST_ALL),
    ],
)
async def test_invalid_restricting_setting_at_start_blocks_sync_and_delete(
    tmp_path: Path, name: str, value: str
) -> None:
    async with engine_room(tmp_path, {name: value}) as room:
        room.repository.push(ONE)
        await room.deliver(syncPolicy=AUTOMATED)
        message = await room.until_condition("UnknownError")
        assert message.startswith(f"argocd-cm: {name}: ") and message.endswith("no Application is synced")
        await room.sync()
        state = (await room.until_over())["status"]["operationState"]
        assert state["phase"] == "Error" and name in state["message"]
        assert await room.get("ConfigMap", "settings") is None
        [finding] = await unreadable_settings(room)
        assert finding.severity is Severity.ERROR and "no Application is synced" in finding.violation.fix
        await room.deliver("others", "other")
        await room.patch_app({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}, "others")
        await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "others"))
        assert name in await room.until_condition("DeletionError", "others")
        await room.configure({name: None})
        await room.until(lambda status: not conditions(status, "UnknownError"))
        await room.sync()
        await room.until_synced()
        assert not conditions((await room.settled())["status"], "UnknownError")


async def unreadable_settings(room: Room) -> list[Finding]:
    desk = ApplicationService(room.cluster, "a test", CONTROL, CONTROL)
    async with open_reader(desk) as reader:
        report = await examine_installation(desk, reader, DoctorOptions(is_quick=True))
    return [finding for finding in report.findings if finding.rule.id == "AGY524"]


async def test_cluster_limited_to_namespaces_manages_no_other_namespace(room: Room) -> None:
    room.repository.push(ONE)
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    near = {"server": "https://kubernetes.default.svc", "name": "near", "namespaces": "other"}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in near.items()}
    metadata = {"name": "near", "namespace": CONTROL, "labels": labels}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    await room.deliver(syncPolicy=AUTOMATED)
    message = await room.until_condition("ComparisonError")
    assert message == 'Failed to load live state: namespace "ml" for ConfigMap "settings" is not managed'
    assert await room.get("ConfigMap", "settings") is None
    changed = {"data": {"namespaces": base64.b64encode(b"ml,other").decode()}}
    await room.cluster.patch(ResourceKey("", "Secret", CONTROL, "near"), changed)
    await room.until_synced()


async def test_broken_health_check_is_reported_and_does_not_block_sync(room: Room) -> None:
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


async def test_last_valid_value_of_a_setting_is_kept(room: Room) -> None:
    room.repository.push(ONE)
    await room.configure({"application.resourceTrackingMethod": "label"})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.configure({"application.resourceTrackingMethod": "magic"})
    assert await unreadable_settings(room)
    await room.sync()
    await room.until_synced()
    metadata = (await room.get("ConfigMap", "settings") or {})["metadata"]
    assert metadata["labels"]["app.kubernetes.io/instance"] == "models"


async def test_sync_past_its_timeout_is_terminated_and_not_retried(room: Room) -> None:
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
    message = "Operation terminated, triggered by controller sync timeout"
    assert (state["phase"], state["message"]) == ("Failed", message)
    assert "retryCount" not in state and await room.get("batch/Job", "check") is None
    assert await room.get("ConfigMap", "settings") is None
