"""`argosy doctor` beside an engine: what it finds of Applications, what it leaves alone, and what it puts right."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.gitops.application_client.reader import ApplicationReader
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
    )  # a busy machine is no finding
    async with scene(tmp_path) as found:
        found.repository.push({"app/settings.yaml": config_map(a="one")}, "Begin")
        found.repository._git("branch", "old")
        await found.deliver()
        await found.until(lambda status: bool(status.get("sync")))
        said = await found.argosy("app", "sync", "models", "--timeout", HANG)
        assert said.code == 0, said.err
        yield found


async def diagnosed(desk: Scene, *words: str, code: int) -> dict[str, Any]:
    said = await desk.argosy("doctor", *words, "-o", "json", "--timeout", HANG)
    assert said.code == code, said
    found: dict[str, Any] = json.loads(said.out)
    assert (found["apiVersion"], found["kind"]) == ("cli.argosy.dev/v1", "Diagnosis")
    return found


async def scaled(desk: Scene) -> None:
    """A controller writes over a field that Git has."""
    await desk.cluster.patch(SETTINGS, {"data": {"a": "scaled"}}, manager="scaler")
    await desk.settled()


async def versions(desk: Scene) -> dict[str, str]:
    found = {}
    for kind in (APPLICATION, GroupKind("", "ConfigMap"), GroupKind("", "Event"), GroupKind("", "Secret")):
        for each in (await desk.cluster.list(kind)).items:
            found[f"{kind}/{each['metadata']['name']}"] = each["metadata"]["resourceVersion"]
    return found


@pytest.mark.tier("all")
async def test_an_installation_that_is_well_is_told_so_and_nothing_is_written(desk: Scene) -> None:
    await desk.settled()
    before = await versions(desk)
    said = await desk.argosy("doctor")
    assert said.code == 0, said
    head, told, score = said.out.splitlines()
    for words in ("cluster reachable (1.32.", "argocd-cm in argocd is no operator's", "1 application readable"):
        assert words in head
    assert told == "1 application: no problems found"
    assert score == "Score 100% synced (1 of 1), 1 of 1 healthy"
    assert said.err.endswith("nothing was changed\n")
    assert await versions(desk) == before


async def test_each_application_has_its_cause_what_helps_and_a_proven_score(desk: Scene) -> None:
    desk.repository.push({"later/settings.yaml": {**config_map(b="1"), "metadata": {"name": "later"}}})
    old = {"repoURL": desk.repository.url, "path": "later", "targetRevision": "old"}
    await desk.deliver("stale", source=old)
    await desk.deliver("lost", path="nowhere")
    for name in ("stale", "lost"):
        await desk.until_condition("ComparisonError", name)
    await scaled(desk)
    before = await versions(desk)
    found = await diagnosed(desk, code=1)
    told = {each["application"]: each for each in found["findings"]}
    assert {name: (each["rule"], each["state"], each["certain"]) for name, each in told.items()} == {
        "models": ("AGY501", "OutOfSync", True),
        "stale": ("AGY509", "ComparisonError", True),
        "lost": ("AGY509", "ComparisonError", None),
    }
    assert told["models"]["cause"] == "acceptable: ConfigMap/settings: data.a set by scaler (1 field)"
    assert told["stale"]["cause"] == "targetRevision old: path later not in branch; main renders"
    assert told["stale"]["remedy"] == "main"
    assert told["lost"]["cause"] == "targetRevision main: path nowhere not in branch"
    assert list(found["score"].pop("left")) == ["lost"]
    assert found["score"] == {
        "applications": 3, "synced": 0, "healthy": 1, "syncedPercent": 0.0, "after": 2, "afterPercent": 66.7,
    }  # fmt: skip
    assert await versions(desk) == before
    said = await desk.argosy("doctor", "--match", "stale|lost", "-o", "status")
    assert said.out.splitlines() == ["lost  ... Unknown/Unknown", "stale ... Unknown/Unknown"]
    listed = (await desk.argosy("doctor", "--checklist")).out.splitlines()
    assert any(
        "no ComparisonError and no SyncError: lost: ComparisonError, stale: ComparisonError" in each for each in listed
    )


@pytest.mark.tier("all")
async def test_drift_by_hand_is_a_warning_where_people_sync_and_explain_says_the_same(desk: Scene) -> None:
    await desk.cluster.patch(SETTINGS, {"data": {"a": "edited"}}, manager="kubectl-edit")
    await desk.settled()
    (found,) = (await diagnosed(desk, code=1))["findings"]
    cause = "changed by hand, but no automated sync reverts it: ConfigMap/settings: data.a set by kubectl-edit"
    assert (found["rule"], found["severity"], found["cause"]) == ("AGY515", "warning", f"{cause} (1 field)")
    said = await desk.argosy("explain", "application/models")
    assert "expected" not in said.out and f"AGY515: {cause}" in said.out
    said = await desk.argosy("doctor", "models", "--explain")
    assert "next: argosy explain application/models" in said.err and "--explain" not in said.err


@pytest.mark.tier("all")
async def test_a_score_says_whom_it_leaves_out_and_why(desk: Scene) -> None:
    await desk.cluster.patch(SETTINGS, {"data": {"a": "edited"}}, manager="kubectl-edit")
    there = {"server": "https://kubernetes.default.svc", "namespace": "nowhere"}
    await desk.deliver("later", destination=there)
    await desk.until(lambda status: bool(status.get("sync")), "later")
    await desk.settled()
    said = await desk.argosy("doctor", "--timeout", HANG)
    assert "Score 0% synced → 50% after fixes and a sync" in said.out
    assert "  without later: a sync cannot be rehearsed: ConfigMap/settings: namespace nowhere or" in said.out


async def test_what_is_certain_is_put_right_only_when_asked_and_a_second_run_finds_nothing(desk: Scene) -> None:
    await scaled(desk)
    said = await desk.argosy("doctor", "--fix")
    assert said.code == 2 and "no terminal for the confirmation" in said.err
    assert "ignoreDifferences" not in (await desk.app())["spec"]
    said = await desk.argosy("doctor", "--fix", "-y")
    assert "models: changed; after a sync it is Synced/Healthy" in said.out
    assert said.code == 0 and "examined again: nothing is left" in said.err, said
    rules = (await desk.app())["spec"]["ignoreDifferences"]
    assert [rule["jsonPointers"] for rule in rules] == [["/data/a"]]
    await desk.until(lambda status: status["sync"]["status"] == "Synced")
    assert (await diagnosed(desk, code=0))["findings"] == []


@pytest.mark.tier("all")
async def test_what_another_application_makes_is_not_changed_in_the_cluster(desk: Scene) -> None:
    await desk.annotate(tracking_id="root:argoproj.io/Application:argocd/models")
    await scaled(desk)
    said = await desk.argosy("doctor", "--fix", "-y")
    assert "root makes it from Git, so change it there: argosy align models --write" in said.err
    assert said.code == 1 and "examined again" not in said.err, "nothing was done"
    assert "ignoreDifferences" not in (await desk.app())["spec"]


@pytest.mark.tier("all")
async def test_what_a_controller_makes_is_not_changed_in_the_cluster_either(desk: Scene) -> None:
    maker = await desk.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fleet", "namespace": CONTROL}}
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "fleet", "uid": maker["metadata"]["uid"]}
    key = ResourceKey(*APPLICATION, CONTROL, "models")
    await desk.cluster.patch(key, {"metadata": {"ownerReferences": [owner]}})
    await scaled(desk)
    said = await desk.argosy("doctor", "--fix", "-y")
    assert "ConfigMap/fleet makes it from Git, so change it there" in said.err
    assert "ignoreDifferences" not in (await desk.app())["spec"]


@pytest.mark.tier("all")
async def test_what_may_not_be_read_is_not_taken_for_missing(desk: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scaled(desk)

    async def refused(reader: ApplicationReader, key: ResourceKey) -> None:
        reader.unreadable.add(key)

    monkeypatch.setattr(ApplicationReader, "_load_object", refused)
    found = json.loads((await desk.argosy("align", "models", "-o", "json")).out)["applications"][0]
    assert "you may not read its ConfigMap" in found["fault"] and found["proposals"] == []
    assert found["before"] == found["after"] == found["afterSync"]


@pytest.mark.tier("all")
async def test_what_lives_in_another_cluster_is_neither_compared_nor_proven(desk: Scene) -> None:
    """Objects of the same names live here, and say nothing of it."""
    place = {"server": "https://elsewhere.example:6443", "namespace": "ml"}
    await desk.deliver("away", destination=place)
    await desk.until_condition("InvalidSpecError", "away")
    found = json.loads((await desk.argosy("align", "away", "-o", "json")).out)
    (away,) = found["applications"]
    assert "https://elsewhere.example:6443" in away["fault"]
    assert away["before"] == away["after"] == away["afterSync"] and found["afterSync"]["errors"] == ["InvalidSpecError"]
    await desk.deliver("barred", project="nobody")
    await desk.until_condition("InvalidSpecError", "barred")
    barred = json.loads((await desk.argosy("align", "barred", "-o", "json")).out)["applications"][0]
    assert "nobody" in barred["fault"] and barred["afterSync"]["errors"] == ["InvalidSpecError"]
    score = (await diagnosed(desk, "barred", "away", code=1))["score"]
    assert (score["synced"], score.get("after", 0)) == (0, 0)
    said = await desk.argosy("app", "diff", "away")
    assert said.code == 2 and "which cannot be read from here" in said.err


@pytest.mark.tier("all")
async def test_the_gate_that_a_sync_waits_at_is_named_with_its_hook(desk: Scene) -> None:
    desk.repository.push({"app/migrate.yaml": JOB, "app/settings.yaml": config_map(a="two")})
    await desk.settled()
    await desk.sync()
    await desk.until(lambda status: "hook" in status["operationState"]["message"])
    found = await diagnosed(desk, code=0)
    (gate,) = found["gates"]
    assert (gate["application"], gate["phase"], gate["wave"]) == ("models", "PreSync", 0)
    assert gate["objects"][0].startswith("Job/migrate (hook)")
    said = await desk.argosy("explain", "application/models")
    assert "waits    wave 0 of PreSync is blocked for " in said.out
    await desk.argosy("app", "terminate-op", "models")


@pytest.mark.tier("all")
async def test_an_application_is_explained_from_its_conditions_to_the_proof(desk: Scene) -> None:
    await scaled(desk)
    said = await desk.argosy("explain", "application/models")
    lines = [line.strip() for line in said.out.splitlines()]
    assert said.code == 0 and lines[0].startswith("Application/models -n argocd: "), said
    for words in (
        "differs  ConfigMap/settings data.a  drift: changed by scaler",
        "why      AGY501: acceptable: ConfigMap/settings: data.a set by scaler (1 field)",
        "next     ignore the fields with the narrowest rule: argosy align models",
        "helps    ignore ConfigMap: /data/a",
        "proof    OutOfSync/Healthy → Synced/Healthy after a sync",
    ):
        assert any(line.startswith(words) for line in lines), (words, said.out)
    found = json.loads((await desk.argosy("explain", "app/models", "-o", "json")).out)
    assert (found["kind"], found["sync"], found["fields"][0]["path"]) == (
        "ApplicationExplanation",
        "OutOfSync",
        "/data/a",
    )


@pytest.mark.tier("all")
async def test_a_repository_that_refuses_the_credentials_is_told_with_the_name_of_the_secret(
    desk: Scene, tmp_path: Path
) -> None:
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
        said = await desk.argosy("doctor", "private", "-o", "json")
    (finding,) = json.loads(said.out)["findings"]
    assert finding["rule"] == "AGY505", finding
    assert f"Git at {url} rejects the credentials of Secret argocd/ml-git" in finding["cause"]
    assert "of-yesterday" not in said.out + said.err


@pytest.mark.tier("all")
async def test_a_root_on_another_branch_keeps_definitions_stale_and_is_told(desk: Scene) -> None:
    child = json.loads(json.dumps(await desk.app()))
    made = {"apiVersion": child["apiVersion"], "kind": child["kind"], "spec": child["spec"]}
    metadata = {"name": "child", "namespace": CONTROL}
    desk.repository._git("checkout", "-q", "old")
    desk.repository.push({"apps/child.yaml": {**made, "metadata": metadata}}, "A child")
    desk.repository._git("checkout", "-q", "main")
    source = {"repoURL": desk.repository.url, "path": "apps", "targetRevision": "old"}
    await desk.deliver("root", source=source)
    await desk.settled("root")
    assert (await desk.argosy("app", "sync", "root", "--timeout", HANG)).code == 0
    await desk.until(lambda status: bool(status.get("sync")), "child")
    await desk.settled("root")
    found = await diagnosed(desk, code=1)
    (told,) = (each["cause"] for each in found["findings"] if each["rule"] == "AGY516")
    assert told == "it creates 1 Application from old, not from main: their manifests are stale"


@pytest.mark.tier("all")
async def test_two_of_one_name_are_told_apart_and_a_namespace_chooses(desk: Scene) -> None:
    await scaled(desk)
    other = {**await desk.app(), "metadata": {"name": "models", "namespace": "ml"}}
    other.pop("status")
    await desk.cluster.create(other)
    found = await diagnosed(desk, code=1)
    told = {each["application"]: each["rule"] for each in found["findings"]}
    assert told["argocd/models"] == "AGY501" != told.get("ml/models")
    alone = json.loads((await desk.argosy("doctor", "-N", "ml", "-o", "json")).out)
    assert [(each["name"], each["namespace"]) for each in alone["applications"]] == [("models", "ml")]
    named = await diagnosed(desk, "argocd/models", code=1)
    assert {each["application"] for each in named["findings"]} == {"argocd/models"}


@pytest.mark.tier("all")
async def test_a_name_that_is_not_there_and_a_flag_that_means_nothing_are_told(desk: Scene) -> None:
    said = await desk.argosy("doctor", "nobody")
    assert said.code == 2 and "Application 'nobody' not found" in said.err
    assert (await desk.argosy("doctor", "-y")).code == 2
    assert (await desk.argosy("doctor", "--match", "(")).code == 2


async def test_windows_and_denials_of_a_project_are_found(desk: Scene) -> None:
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
    found = {each["rule"]: each for each in (await diagnosed(desk, code=1))["findings"] if "rule" in each}
    assert found["AGY522"]["application"] == "models"
    assert found["AGY522"]["cause"] == (
        "its operation waits for a sync window: a deny window is open without end: * * * * * for 1h"
    )
    assert "argosy app terminate-op models" in found["AGY522"]["fix"]
    assert "AppProject/team: sync window 1 is malformed" in found["AGY521"]["cause"]
    assert "'!https://github.com/**'" in found["AGY118"]["fix"]
