"""`argosy doctor` for an existing Argo CD: its settings, operator and health checks, with limited permissions too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application_client.application_service import utc_now
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from support.app_commands import Said, Scene, scene
from support.clusters import Finished, Sandbox, argosy, kubectl, sandbox
from support.deadlines import wait_until
from support.engine import CONTROL
from support.gitops_operator import (
    APPLICATIONS,
    GITOPS,
    MODEL_KEY,
    RESOURCE,
    application,
    argo_cd_playing,
    create,
    data,
    patch,
    ready,
    with_model,
)

SCRIPT = "hs = {}\nhs.status = 'Healthy'\nreturn hs\n"
ENTRY = {"group": "serving.kserve.io", "kind": "InferenceService", "check": SCRIPT}
ARGOCD = ResourceKey("argoproj.io", "ArgoCD", CONTROL, "argocd")
CONFIG = ResourceKey("", "ConfigMap", CONTROL, "argocd-cm")
TOUCHED = "kubectl.kubernetes.io/restartedAt"


# -- an ArgoCD resource whose operator does not act -------------------------------------------------------------------


@pytest.fixture
async def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """An ArgoCD resource that no operator reconciles, with the clock of doctor five minutes ahead."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("argosy.features.doctor.service.utc_now", lambda: utc_now() + timedelta(minutes=5))
    async with scene(tmp_path) as opened_scene:
        await opened_scene.cluster.create(load_definition("argocds.argoproj.io"))
        metadata = {"name": ARGOCD.name, "namespace": CONTROL}
        spec = {"resourceHealthChecks": [ENTRY]}
        await opened_scene.cluster.create(
            {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata, "spec": spec},
            manager="kubectl",
        )
        yield opened_scene


def read_causes(said: Said) -> dict[str, list[str]]:
    causes: dict[str, list[str]] = {}
    for finding in json.loads(said.out)["findings"]:
        causes.setdefault(finding["rule"], []).append(finding["cause"])
    return causes


@pytest.mark.tier("all")
@pytest.mark.anyio
async def test_check_missing_from_argocd_cm_is_blamed_on_the_operator(idle: Scene) -> None:
    result = await idle.argosy("doctor", "-o", "json")
    (cause,) = read_causes(result)["AGY508"]
    assert cause.startswith(
        f"health check in ArgoCD CR argocd, not in ConfigMap argocd-cm: {MODEL_KEY}; operator not reconciling"
    )
    assert result.code == 1


@pytest.mark.anyio
@pytest.mark.tier("all")
async def test_fix_touches_the_argocd_resource_and_waits_for_the_check(idle: Scene) -> None:
    async def act_when_touched() -> None:
        while TOUCHED not in ((await idle.cluster.get(ARGOCD)) or {})["metadata"].get("annotations", {}):
            await asyncio.sleep(0.02)
        await idle.cluster.patch(CONFIG, {"data": {MODEL_KEY: SCRIPT}})

    operator = asyncio.create_task(act_when_touched())
    result = await idle.argosy("doctor", "--fix", "-y")
    await operator
    assert f"ArgoCD/argocd: argocd-cm has {MODEL_KEY} now" in result.out, result


@pytest.mark.anyio
@pytest.mark.tier("all")
async def test_fix_reports_an_operator_that_does_not_act(idle: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.features.doctor.fixes.TOUCH_TIMEOUT_SECONDS", 0.2)
    result = await idle.argosy("doctor", "--fix", "-y")
    assert f"argocd-cm still lacks {MODEL_KEY} after 0.2 s: the operator does not act" in result.out
    assert result.code == 1 and "examined again: 1 " in result.err, result


@pytest.mark.anyio
@pytest.mark.tier("all")
async def test_key_overridden_by_extra_config_is_not_blamed_on_the_operator(idle: Scene) -> None:
    other = {"extraConfig": {MODEL_KEY: "return {status = 'Degraded'}"}}
    await idle.cluster.patch(ARGOCD, {"spec": other})
    causes = read_causes(await idle.argosy("doctor", "-o", "json"))
    assert "AGY508" not in causes
    assert f"spec.extraConfig of ArgoCD argocd holds {MODEL_KEY}, which wins" in causes["AGY405"][0]


@pytest.mark.anyio
@pytest.mark.tier("all")
async def test_health_script_without_a_result_is_reported(idle: Scene) -> None:
    broken = {**ENTRY, "check": "hs = {}\nhs.status = 'Healthy'\n"}
    await idle.cluster.patch(ARGOCD, {"spec": {"resourceHealthChecks": [broken]}})
    assert "AGY401" in read_causes(await idle.argosy("doctor", "-o", "json"))


@pytest.mark.anyio
async def test_argocd_component_that_is_not_ready_is_reported_first(idle: Scene) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "quay.io/argoproj/argocd:v3.2.4"}]},
    }
    spec = {"serviceName": "x", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": "argocd-application-controller", "namespace": CONTROL}
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    await idle.cluster.create(stateful_set)
    await idle.cluster.patch(ARGOCD, {"spec": {"resourceHealthChecks": None}})
    result = await idle.argosy("doctor")
    assert result.code == 1
    words = "Argo CD is not running whole: StatefulSet/argocd-application-controller is not ready"
    assert words in result.out.splitlines()[0]
    key = ResourceKey("apps", "StatefulSet", CONTROL, metadata["name"])
    await idle.cluster.patch(key, {"status": {"replicas": 1, "readyReplicas": 1}}, subresource="status")
    doctor_result = await idle.argosy("doctor")
    assert doctor_result.code == 0 and "Argo CD 3.2.4 runs" in doctor_result.out.splitlines()[0]


# -- the operator stand-in, and limited permissions -------------------------------------------------------------------


@pytest.fixture(scope="module")
def gitops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    flags = ("--port", "0", "--rbac", "--addons", "argocd_operator")
    with sandbox(tmp_path_factory.mktemp("doctor") / "data", *flags) as started:
        ready(started)
        create(started, APPLICATIONS, application("models-dev", "Synced", "Healthy"))
        create(started, APPLICATIONS, application("models-production", "OutOfSync", "Missing"))
        yield started


def doctor(started: Sandbox, *words: object, kubeconfig: Path | None = None) -> Finished:
    return argosy("doctor", *words, "--kubeconfig", kubeconfig or started.kubeconfig, home=started.folder.parent)


@pytest.mark.usefixtures("needs_kubectl")
@pytest.mark.tier("all")
def test_argocd_cm_edit_reverted_by_the_operator_is_expected_behaviour(gitops: Sandbox) -> None:
    key = "resource.customizations.health.PersistentVolumeClaim"
    edit = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": GITOPS},
            "data": {key: "return {status = 'Healthy'}"}}  # fmt: skip
    done = kubectl(gitops.kubeconfig, "apply", "-f", "-", input=json.dumps(edit))
    assert done.code == 0, done.err
    wait_until(lambda: key not in data(gitops))
    diagnosis = json.loads(doctor(gitops, "-o", "json").out)
    assert [check["name"] for check in diagnosis["checks"] if check["state"] != "ok"] == ["controllers"], (
        "nothing runs in it"
    )
    assert f"ArgoCD CR {GITOPS}/{GITOPS} is the owner of argocd-cm" in [check["text"] for check in diagnosis["checks"]]
    (finding,) = (entry for entry in diagnosis["findings"] if entry["rule"] == "AGY405")
    assert finding["cause"].startswith(f"{key} was applied to argocd-cm by hand, and the operator has removed it")
    assert finding["fix"].startswith("expected behaviour, use the CR")


@pytest.mark.usefixtures("needs_kubectl")
@pytest.mark.tier("all")
def test_doctor_with_read_access_to_applications_only_shows_their_status(gitops: Sandbox) -> None:
    home = gitops.folder.parent
    file = home / "ada"
    file.write_text(argosy("sandbox", "user", "add", "ada", "--data-dir", gitops.folder, home=home).out)
    blind = doctor(gitops, kubeconfig=file)
    assert blind.code == 5 and "Applications cannot be read" in blind.out and "Traceback" not in blind.err
    assert "ask for get and list of applications.argoproj.io" in blind.err
    rule = ("--verb=get,list", "--resource=applications.argoproj.io")
    admin = (gitops.kubeconfig, "-n", GITOPS, "create")
    assert kubectl(*admin, "role", "reader", *rule).code == 0
    assert kubectl(*admin, "rolebinding", "reader", "--role=reader", "--user=ada").code == 0
    result = doctor(gitops, "-o", "json", kubeconfig=file)
    diagnosis = json.loads(result.out)
    assert {app["name"]: (app["sync"], app["health"]) for app in diagnosis["applications"]} == {
        "models-dev": ("Synced", "Healthy"),
        "models-production": ("OutOfSync", "Missing"),
    }
    assert all("you may not read" in note or "cannot be compared" in note for note in diagnosis["notes"]), diagnosis[
        "notes"
    ]
    assert not any(finding["rule"] in ("AGY501", "AGY503", "AGY508", "AGY513") for finding in diagnosis["findings"])
    assert patched(gitops) == []


def patched(started: Sandbox) -> list[str]:
    """Return the argosy field managers that wrote to Applications."""
    items: list[Any] = started.request("GET", APPLICATIONS).json()["items"]
    managers = {entry["manager"] for app in items for entry in app["metadata"].get("managedFields") or ()}
    return sorted(name for name in managers if "argosy" in name)


@pytest.mark.tier("all")
def test_doctor_does_not_change_the_argocd_resource(gitops: Sandbox) -> None:
    before = gitops.request("GET", RESOURCE).json()["metadata"]["resourceVersion"]
    doctor(gitops)
    assert gitops.request("GET", RESOURCE).json()["metadata"]["resourceVersion"] == before
    patch(gitops, RESOURCE, {"spec": {"resourceHealthChecks": None}})


@pytest.mark.tier("all")
def test_ready_model_shown_as_progressing_is_diagnosed_and_fixed(gitops: Sandbox) -> None:
    with_model(gitops, "fraud", "x")
    create(
        gitops, APPLICATIONS, application("fraud", "Synced", "Progressing", ("serving.kserve.io", "InferenceService"))
    )
    words = "InferenceService/x: its condition Ready is True, but Argo CD shows Progressing"
    (finding,) = json.loads(doctor(gitops, "fraud", "-o", "json").out)["findings"]
    assert finding["cause"] == f"{words}: no health check for InferenceService in ArgoCD CR {GITOPS}"
    patch(gitops, RESOURCE, {"spec": {"resourceHealthChecks": [ENTRY]}})
    wait_until(lambda: MODEL_KEY in data(gitops))
    (entry,) = json.loads(doctor(gitops, "fraud", "-o", "json").out)["findings"]
    assert entry["cause"] == f"{words}: the health check is in ArgoCD CR and in ConfigMap"
    assert "refresh it hard and wait 30 s" in entry["fix"]
    assert "hard-refresh the browser (Ctrl+Shift+R, or Cmd+Shift+R)" in entry["fix"]
    with argo_cd_playing(gitops):
        fixed = doctor(gitops, "fraud", "--fix", "-y")
    assert "fraud: it is Healthy now; then hard-refresh the browser" in fixed.out, fixed
