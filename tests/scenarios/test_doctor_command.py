"""`argosy doctor` with an engine: findings for Applications, and what `--fix` changes and leaves unchanged."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.app_commands import HANG, Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import APPLICATION, CONTROL, config_map
from support.git_server import git_host

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")
JOB: Manifest = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migrate", "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "main:1"}]}}},
}


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "argosy.features.doctor.service.MIN_PROOF_SECONDS", HANG_SECONDS
    )  # a busy machine must not cause a finding
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one")}, "Begin")
        opened_scene.repository._git("branch", "old")
        await opened_scene.deliver()
        await opened_scene.until(lambda status: bool(status.get("sync")))
        result = await opened_scene.argosy("app", "sync", "models", "--timeout", HANG)
        assert result.code == 0, result.err
        yield opened_scene


async def diagnosed(desk: Scene, *words: str, code: int) -> dict[str, Any]:
    result = await desk.argosy("doctor", *words, "-o", "json", "--timeout", HANG)
    assert result.code == code, result
    diagnosis: dict[str, Any] = json.loads(result.out)
    assert (diagnosis["apiVersion"], diagnosis["kind"]) == ("cli.argosy.dev/v1", "Diagnosis")
    return diagnosis


async def scaled(desk: Scene) -> None:
    """Let another controller overwrite a field that is set in Git."""
    await desk.cluster.patch(SETTINGS, {"data": {"a": "scaled"}}, manager="scaler")
    await desk.settled()


async def versions(desk: Scene) -> dict[str, str]:
    resource_versions = {}
    for kind in (APPLICATION, GroupKind("", "ConfigMap"), GroupKind("", "Event"), GroupKind("", "Secret")):
        for manifest in (await desk.cluster.list(kind)).items:
            resource_versions[f"{kind}/{manifest['metadata']['name']}"] = manifest["metadata"]["resourceVersion"]
    return resource_versions


@pytest.mark.tier("all")
async def test_healthy_installation_gives_no_findings_and_no_writes(desk: Scene) -> None:
    await desk.settled()
    before = await versions(desk)
    result = await desk.argosy("doctor")
    assert result.code == 0, result
    head, summary, score = result.out.splitlines()
    checks = ("cluster reachable (1.32.", "argocd-cm in argocd is not managed by an operator", "1 application readable")
    for words in checks:
        assert words in head
    assert summary == "1 application: no problems found"
    assert score == "Score 100% synced (1 of 1), 1 of 1 healthy"
    assert result.err.endswith("nothing was changed\n")
    assert await versions(desk) == before


async def test_each_application_gets_a_cause_and_a_remedy_and_all_get_a_score(desk: Scene) -> None:
    desk.repository.push({"later/settings.yaml": {**config_map(b="1"), "metadata": {"name": "later"}}})
    old = {"repoURL": desk.repository.url, "path": "later", "targetRevision": "old"}
    await desk.deliver("stale", source=old)
    await desk.deliver("lost", path="nowhere")
    for name in ("stale", "lost"):
        await desk.until_condition("ComparisonError", name)
    await scaled(desk)
    before = await versions(desk)
    diagnosis = await diagnosed(desk, code=1)
    findings = {finding["application"]: finding for finding in diagnosis["findings"]}
    assert {name: (finding["rule"], finding["state"], finding["certain"]) for name, finding in findings.items()} == {
        "models": ("AGY501", "OutOfSync", True),
        "stale": ("AGY509", "ComparisonError", True),
        "lost": ("AGY509", "ComparisonError", None),
    }
    assert findings["models"]["cause"] == "acceptable: ConfigMap/settings: data.a set by scaler (1 field)"
    assert findings["stale"]["cause"] == "targetRevision old: path later not in branch; main renders"
    assert findings["stale"]["remedy"] == "main"
    assert findings["lost"]["cause"] == "targetRevision main: path nowhere not in branch"
    assert list(diagnosis["score"].pop("left")) == ["lost"]
    assert diagnosis["score"] == {
        "applications": 3, "synced": 0, "healthy": 3, "syncedPercent": 0.0, "after": 2, "afterPercent": 66.7,
    }  # fmt: skip
    assert await versions(desk) == before
    result = await desk.argosy("doctor", "--match", "stale|lost", "-o", "status")
    assert result.out.splitlines() == ["lost  ... Unknown/Healthy", "stale ... Unknown/Healthy"]
    listed = (await desk.argosy("doctor", "--checklist")).out.splitlines()
    assert any(
        "no ComparisonError and no SyncError: lost: ComparisonError, stale: ComparisonError" in line for line in listed
    )


@pytest.mark.tier("all")
async def test_manual_drift_without_automated_sync_is_a_warning_in_doctor_and_explain(desk: Scene) -> None:
    await desk.cluster.patch(SETTINGS, {"data": {"a": "edited"}}, manager="kubectl-edit")
    await desk.settled()
    (finding,) = (await diagnosed(desk, code=1))["findings"]
    cause = "changed by hand, but no automated sync reverts it: ConfigMap/settings: data.a set by kubectl-edit"
    assert (finding["rule"], finding["severity"], finding["cause"]) == ("AGY515", "warning", f"{cause} (1 field)")
    result = await desk.argosy("explain", "application/models")
    assert "expected" not in result.out and f"AGY515: {cause}" in result.out
    doctor_result = await desk.argosy("doctor", "models", "--explain")
    assert "next: argosy explain application/models" in doctor_result.err and "--explain" not in doctor_result.err


@pytest.mark.tier("all")
async def test_score_names_the_application_it_leaves_out_and_why(desk: Scene) -> None:
    await desk.cluster.patch(SETTINGS, {"data": {"a": "edited"}}, manager="kubectl-edit")
    there = {"server": "https://kubernetes.default.svc", "namespace": "nowhere"}
    await desk.deliver("later", destination=there)
    await desk.until(lambda status: bool(status.get("sync")), "later")
    await desk.settled()
    result = await desk.argosy("doctor", "--timeout", HANG)
    assert "Score 0% synced → 50% after fixes and a sync" in result.out
    assert "  without later: a sync cannot be rehearsed: ConfigMap/settings: namespace nowhere or" in result.out


async def test_fix_needs_confirmation_and_a_second_run_finds_nothing(desk: Scene) -> None:
    await scaled(desk)
    result = await desk.argosy("doctor", "--fix")
    assert result.code == 2 and "no terminal for the confirmation" in result.err
    assert "ignoreDifferences" not in (await desk.app())["spec"]
    doctor_result = await desk.argosy("doctor", "--fix", "-y")
    assert "models: changed; after a sync it is Synced/Healthy" in doctor_result.out
    assert doctor_result.code == 0 and "examined again: nothing is left" in doctor_result.err, doctor_result
    rules = (await desk.app())["spec"]["ignoreDifferences"]
    assert [rule["jsonPointers"] for rule in rules] == [["/data/a"]]
    await desk.until(lambda status: status["sync"]["status"] == "Synced")
    assert (await diagnosed(desk, code=0))["findings"] == []


@pytest.mark.tier("all")
async def test_fix_does_not_change_an_application_managed_by_another_application(desk: Scene) -> None:
    await desk.annotate(tracking_id="root:argoproj.io/Application:argocd/models")
    await scaled(desk)
    result = await desk.argosy("doctor", "--fix", "-y")
    assert "root makes it from Git, so change it there: argosy align models --write" in result.err
    assert result.code == 1 and "examined again" not in result.err, "nothing was done"
    assert "ignoreDifferences" not in (await desk.app())["spec"]


@pytest.mark.tier("all")
async def test_fix_does_not_change_an_application_with_an_owner_reference(desk: Scene) -> None:
    maker = await desk.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fleet", "namespace": CONTROL}}
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "fleet", "uid": maker["metadata"]["uid"]}
    key = ResourceKey(*APPLICATION, CONTROL, "models")
    await desk.cluster.patch(key, {"metadata": {"ownerReferences": [owner]}})
    await scaled(desk)
    result = await desk.argosy("doctor", "--fix", "-y")
    assert "ConfigMap/fleet makes it from Git, so change it there" in result.err
    assert "ignoreDifferences" not in (await desk.app())["spec"]


@pytest.mark.tier("all")
async def test_align_reports_an_unreadable_object(desk: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scaled(desk)

    async def refused(reader: ApplicationReader, key: ResourceKey) -> None:
        reader.unreadable.add(key)

    monkeypatch.setattr(ApplicationReader, "_load_object", refused)
    alignment = json.loads((await desk.argosy("align", "models", "-o", "json")).out)["applications"][0]
    assert "you may not read its ConfigMap" in alignment["fault"] and alignment["proposals"] == []
    assert alignment["before"] == alignment["after"] == alignment["afterSync"]


@pytest.mark.tier("all")
async def test_application_with_an_unknown_cluster_or_project_is_not_compared(desk: Scene) -> None:
    """The local cluster has objects of the same names, which must not be used."""
    destination = {"server": "https://elsewhere.example:6443", "namespace": "ml"}
    await desk.deliver("away", destination=destination)
    await desk.until_condition("InvalidSpecError", "away")
    report = json.loads((await desk.argosy("align", "away", "-o", "json")).out)
    (away,) = report["applications"]
    assert "https://elsewhere.example:6443" in away["fault"]
    assert away["before"] == away["after"] == away["afterSync"] and report["afterSync"]["errors"] == [
        "InvalidSpecError"
    ]
    await desk.deliver("barred", project="nobody")
    await desk.until_condition("InvalidSpecError", "barred")
    barred = json.loads((await desk.argosy("align", "barred", "-o", "json")).out)["applications"][0]
    assert "nobody" in barred["fault"] and barred["afterSync"]["errors"] == ["InvalidSpecError"]
    score = (await diagnosed(desk, "barred", "away", code=1))["score"]
    assert (score["synced"], score.get("after", 0)) == (0, 0)
    result = await desk.argosy("app", "diff", "away")
    assert result.code == 2 and "which cannot be read from here" in result.err


@pytest.mark.tier("all")
async def test_blocked_sync_wave_is_reported_with_its_hook(desk: Scene) -> None:
    desk.repository.push({"app/migrate.yaml": JOB, "app/settings.yaml": config_map(a="two")})
    await desk.settled()
    await desk.sync()
    await desk.until(lambda status: "hook" in status["operationState"]["message"])
    diagnosis = await diagnosed(desk, code=0)
    (gate,) = diagnosis["gates"]
    assert (gate["application"], gate["phase"], gate["wave"]) == ("models", "PreSync", 0)
    assert gate["objects"][0].startswith("Job/migrate (hook)")
    result = await desk.argosy("explain", "application/models")
    assert "waits    wave 0 of PreSync is blocked for " in result.out
    await desk.argosy("app", "terminate-op", "models")


@pytest.mark.tier("all")
async def test_explain_application_shows_difference_cause_fix_and_proof(desk: Scene) -> None:
    await scaled(desk)
    result = await desk.argosy("explain", "application/models")
    lines = [line.strip() for line in result.out.splitlines()]
    assert result.code == 0 and lines[0].startswith("Application/models -n argocd: "), result
    for words in (
        "differs  ConfigMap/settings data.a  drift: changed by scaler",
        "why      AGY501: acceptable: ConfigMap/settings: data.a set by scaler (1 field)",
        "fix      ignore the fields with the narrowest rule: argosy align models",
        "proposal ignore ConfigMap: /data/a",
        "proof    OutOfSync/Healthy → Synced/Healthy after a sync",
    ):
        assert any(line.startswith(words) for line in lines), (words, result.out)
    explanation = json.loads((await desk.argosy("explain", "app/models", "-o", "json")).out)
    assert (explanation["kind"], explanation["sync"], explanation["fields"][0]["path"]) == (
        "ApplicationExplanation",
        "OutOfSync",
        "/data/a",
    )


@pytest.mark.tier("all")
async def test_rejected_git_credentials_are_reported_with_the_secret_name(desk: Scene, tmp_path: Path) -> None:
    with git_host(tmp_path) as host:
        host.wanted = "Basic nobody-knows"
        await desk.configure({"source.protocols": "https, ssh, http"}, "argosy-cm")
        url = f"{host.url}/repository/.git"
        values = {"type": "git", "url": url, "username": "ann", "password": "of-yesterday"}
        metadata = {"name": "ml-git", "namespace": CONTROL, "labels": {"argocd.argoproj.io/secret-type": "repository"}}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values}
        await desk.cluster.create(secret)
        await desk.deliver("private", source={"repoURL": url, "path": "app", "targetRevision": "main"})
        await desk.until_condition("ComparisonError", "private")
        result = await desk.argosy("doctor", "private", "-o", "json")
    (finding,) = json.loads(result.out)["findings"]
    assert finding["rule"] == "AGY505", finding
    assert f"Git at {url} rejects the credentials of Secret argocd/ml-git" in finding["cause"]
    assert "of-yesterday" not in result.out + result.err


@pytest.mark.tier("all")
async def test_app_of_apps_on_another_branch_is_reported_as_stale(desk: Scene) -> None:
    child = json.loads(json.dumps(await desk.app()))
    manifest = {"apiVersion": child["apiVersion"], "kind": child["kind"], "spec": child["spec"]}
    metadata = {"name": "child", "namespace": CONTROL}
    desk.repository._git("checkout", "-q", "old")
    desk.repository.push({"apps/child.yaml": {**manifest, "metadata": metadata}}, "A child")
    desk.repository._git("checkout", "-q", "main")
    source = {"repoURL": desk.repository.url, "path": "apps", "targetRevision": "old"}
    await desk.deliver("root", source=source)
    await desk.settled("root")
    assert (await desk.argosy("app", "sync", "root", "--timeout", HANG)).code == 0
    await desk.until(lambda status: bool(status.get("sync")), "child")
    await desk.settled("root")
    diagnosis = await diagnosed(desk, code=1)
    (cause,) = (finding["cause"] for finding in diagnosis["findings"] if finding["rule"] == "AGY516")
    assert cause == "it creates 1 Application from old, not from main: their manifests are stale"


@pytest.mark.tier("all")
async def test_applications_of_the_same_name_are_distinguished_by_namespace(desk: Scene) -> None:
    await scaled(desk)
    other = {**await desk.app(), "metadata": {"name": "models", "namespace": "ml"}}
    other.pop("status")
    await desk.cluster.create(other)
    diagnosis = await diagnosed(desk, code=1)
    rules = {finding["application"]: finding["rule"] for finding in diagnosis["findings"]}
    assert rules["argocd/models"] == "AGY501" != rules.get("ml/models")
    alone = json.loads((await desk.argosy("doctor", "-N", "ml", "-o", "json")).out)
    assert [(application["name"], application["namespace"]) for application in alone["applications"]] == [
        ("models", "ml")
    ]
    named = await diagnosed(desk, "argocd/models", code=1)
    assert {finding["application"] for finding in named["findings"]} == {"argocd/models"}


@pytest.mark.tier("all")
async def test_unknown_application_and_invalid_flags_exit_2(desk: Scene) -> None:
    result = await desk.argosy("doctor", "nobody")
    assert result.code == 2 and "Application 'nobody' not found" in result.err
    assert (await desk.argosy("doctor", "-y")).code == 2
    assert (await desk.argosy("doctor", "--match", "(")).code == 2


async def test_bad_sync_windows_and_source_denials_of_a_project_are_reported(desk: Scene) -> None:
    malformed = {"kind": "deny", "schedule": "0 8 * * *", "duration": "an hour", "clusters": ["nowhere"]}
    always = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["models"]}
    spec = {
        "sourceRepos": ["*", "!https://github.com/*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "syncWindows": [always, malformed],
    }
    metadata = {"name": "team", "namespace": CONTROL}
    await desk.cluster.create(
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}
    )
    key = ResourceKey(*APPLICATION, CONTROL, "models")
    await desk.cluster.patch(key, {"spec": {"project": "team"}, "operation": {"sync": {}}})
    await desk.until(lambda status: "blocked by sync window" in str(status.get("operationState")))
    findings = {
        finding["rule"]: finding for finding in (await diagnosed(desk, code=1))["findings"] if "rule" in finding
    }
    assert findings["AGY522"]["application"] == "models"
    assert findings["AGY522"]["cause"] == (
        "its operation waits for a sync window: a deny window is open without end: * * * * * for 1h"
    )
    assert "argosy app terminate-op models" in findings["AGY522"]["fix"]
    assert "AppProject/team: sync window 1 is malformed" in findings["AGY521"]["cause"]
    assert "'!https://github.com/**'" in findings["AGY118"]["fix"]
