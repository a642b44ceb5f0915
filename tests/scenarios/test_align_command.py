"""`argosy align` on a cluster with an engine: proposals, written files, and whether its predictions come true."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from argosy.kube.client import AdmissionHandler, PatchKind
from argosy.kube.objects import Manifest, read_yaml
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.app_commands import HANG, Said, Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, config_map, engine_room
from support.real_server import REAL, WipedServer

WIDGETS = GroupKind("example.org", "Widget")
CHILDREN = ("behind", "crowded", "elder", "good", "leaky", "mine", "moved", "stale", "tuned", "younger")
APPLICATION = """\
# {name}, written by hand
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {name}
  namespace: argocd
spec:
  project: default
  source:
    repoURL: {url}
    path: {name}
    targetRevision: {ref} # followed
  destination:
    server: https://kubernetes.default.svc
    namespace: ml
{more}"""
RULES = """\
  ignoreDifferences:
    # counted by the server
    - group: example.org
      kind: Widget
      jsonPointers:
        - /status
        - /metadata/generation
"""
LABELS = """\
resources:
  - deployment.yaml
labels:
  # who asks finds it by these
  - pairs:
      stage: two
    includeSelectors: true
"""


def widgets() -> Manifest:
    spec = {"type": "object", "properties": {name: {"type": "integer"} for name in ("size", "speed", *"abcdef")}}
    version = {
        "name": "v1", "served": True, "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }  # fmt: skip
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(name: str, **spec: Any) -> Manifest:
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, **labels: str) -> Manifest:
    container = {"name": "main", "image": "x:1", "workingDir": "/one"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@dataclass
class Story:
    """The output and the files after each command run (turn)."""

    results: dict[str, Said] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    listed: dict[str, dict[str, str]] = field(default_factory=dict)
    branch: str = ""
    status: str = ""
    is_real: bool = False  # a real server, without the admission handler

    def data(self, turn: str = "json") -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.results[turn].out)
        return report

    def app(self, name: str, turn: str = "json") -> dict[str, Any]:
        (report,) = (
            application for application in self.data(turn)["applications"] if application["application"] == name
        )
        return dict(report)

    def kinds(self, name: str, turn: str = "json") -> list[str]:
        return [proposal["kind"] for proposal in self.app(name, turn)["proposals"]]


@pytest.fixture(scope="module", params=[pytest.param("embedded", marks=pytest.mark.tier("all")), REAL])
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("align")
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    try:
        return anyio.run(_played, folder, server)
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def _admit(new: Manifest, old: Manifest | None) -> Manifest:
    return {**new, "spec": {**new["spec"], "size": 3}} if new["metadata"]["name"] == "set" else new


async def _played(folder: Path, server: WipedServer | None) -> Story:
    if server is not None:
        async with engine_room(folder, server=server) as room:
            kubeconfig = server.running.kubeconfig
            desk = Scene(room.cluster, room.repository, room.engine, clock=room.clock, kubeconfig=kubeconfig)
            await _told(desk)
            return replace(await _typed(desk), is_real=True)
    async with scene(folder) as desk:
        with desk.cluster.register_admission([AdmissionHandler(WIDGETS, "sizes.example.org", "sizes", _admit)]):  # type: ignore[attr-defined]
            await _told(desk)
            return await _typed(desk)


async def _told(desk: Scene) -> None:
    await desk.cluster.create(widgets())
    async with asyncio.timeout(HANG_SECONDS):
        while WIDGETS not in await desk.cluster.kinds():
            await asyncio.sleep(0.05)
    await _begun(desk)
    await _gone_on(desk)


def _application(desk: Scene, name: str, ref: str = "main", more: str = "") -> str:
    return APPLICATION.format(name=name, url=desk.repository.url, ref=ref, more=more)


async def _begun(desk: Scene) -> None:
    """Create ten Applications through an eleventh, and sync all of them but one."""
    push, git = desk.repository.push, desk.repository._git
    push({"README.md": "begin"})
    git("branch", "old")
    push(
        {
            **{f"apps/{name}.yaml": _application(desk, name) for name in CHILDREN},
            "apps/stale.yaml": _application(desk, "stale", "old"),
            "apps/tuned.yaml": _application(desk, "tuned", more=RULES),
            "good/settings.yaml": config_map("good", a="one"),
            "behind/settings.yaml": config_map("behind", a="one"),
            "crowded/widget.yaml": widget("crowded", **dict.fromkeys("abcdef", 1)),
            "crowded/deployment.yaml": deployment("crowded", app="crowded"),
            "mine/settings.yaml": config_map("mine", a="one"),
            "stale/settings.yaml": config_map("stale", a="one"),
            "tuned/set.yaml": widget("set", size=1, speed=1),
            "tuned/other.yaml": widget("other", size=1, speed=1),
            "moved/deployment.yaml": deployment("moved", app="moved"),
            "leaky/deployment.yaml": deployment("leaky", app="leaky"),
            "leaky/kustomization.yaml": "resources:\n  - deployment.yaml\n",
            "family/deployment.yaml": deployment("family", app="family"),
            "family/kustomization.yaml": "resources:\n  - deployment.yaml\n",
            "elder/kustomization.yaml": "namePrefix: elder-\nresources:\n  - ../family\n",
            "younger/kustomization.yaml": "namePrefix: younger-\nresources: []\n",
        }
    )
    await desk.deliver("root", "apps", destination={"server": "https://kubernetes.default.svc", "namespace": CONTROL})
    git("branch", "old-behind")
    await desk.argosy("app", "sync", "root", "--timeout", HANG)
    names = [child for child in CHILDREN if child != "stale"]
    result = await desk.argosy("app", "sync", *names, "--timeout", HANG)
    assert result.code == 0, result


async def _gone_on(desk: Scene) -> None:
    desk.repository.push(
        {
            "mine/settings.yaml": config_map("mine", a="two"),
            "moved/deployment.yaml": deployment("moved", app="renamed"),
            "leaky/kustomization.yaml": LABELS,
            "behind/settings.yaml": config_map("behind", a="two"),
            "family/kustomization.yaml": LABELS,
            "younger/kustomization.yaml": "namePrefix: younger-\nresources:\n  - ../family\n",
        }
    )
    result = await desk.argosy("app", "sync", "behind", "younger", "--timeout", HANG)
    assert result.code == 0, result
    desk.repository.push({"apps/behind.yaml": _application(desk, "behind", "old-behind")})
    sync_result = await desk.argosy("app", "sync", "root", "--timeout", HANG)
    assert sync_result.code == 0, sync_result
    crowded = ResourceKey("example.org", "Widget", "ml", "crowded")
    await desk.cluster.patch(crowded, {"spec": dict.fromkeys("abcdef", 7)}, manager="planner")
    moved = {"spec": {"template": {"spec": {"containers": [{"name": "main", "workingDir": "/two"}]}}}}
    deployment_key = ResourceKey("apps", "Deployment", "ml", "crowded")
    await desk.cluster.patch(deployment_key, moved, kind_of_patch=PatchKind.STRATEGIC, manager="updater")
    other = ResourceKey("example.org", "Widget", "ml", "other")
    await desk.cluster.patch(other, {"spec": {"speed": 9}}, manager="tuner")
    other_states = {"good": "Synced", "younger": "Synced", "stale": "Unknown"}
    await _until(desk, dict.fromkeys(CHILDREN, "OutOfSync") | other_states)


async def _until(desk: Scene, sync_statuses: dict[str, str]) -> None:
    for name in sync_statuses:
        await desk.annotate(name, refresh="normal")
    for name, word in sync_statuses.items():
        await desk.until(lambda status, word=word: status.get("sync", {}).get("status") == word, name)  # type: ignore[misc]


async def _typed(desk: Scene) -> Story:
    story, root = Story(), desk.repository.path
    repo = ("--repo", str(root))

    async def turn(name: str, *words: str) -> None:
        story.results[name] = await desk.argosy("align", *words)
        story.files[name] = _texts(root)

    await turn("json", *repo, "-o", "json")
    await turn("text", *repo)
    await turn("documented", "moved", *repo, "--as-documented", "-o", "json")
    await turn("recreate", "moved", *repo, "--recreate", "-o", "json")
    await turn("accepted", "behind", *repo, "--accept", "-o", "json")
    await turn("nobody", *repo, "--accept")
    await turn("nowhere", "good", "-o", "json")
    await turn("elder", "elder", "-o", "json")
    await turn("patch", *repo, "--patch", "-")
    await turn("branch", *repo, "--branch", "aligned", "-m", "Align them")
    story.branch = _git(root, "log", "-1", "--format=%s", "--name-only", "aligned")
    story.status = _git(root, "status", "--porcelain")
    twice = root / "apps" / "twice.yaml"
    twice.write_text(_application(desk, "tuned"))
    await turn("twice", "tuned", *repo, "-o", "json")
    twice.unlink()
    tuned = root / "apps" / "tuned.yaml"
    tuned.write_text(f"# not pushed\n{tuned.read_text()}")
    await turn("elsewhere", "tuned", *repo, "-o", "json")
    _git(root, "checkout", "-q", "--", "apps")
    await turn("write", *repo, "--write")
    desk.repository.push({}, "Align")
    result = await desk.argosy("app", "sync", "root", "--timeout", HANG)
    assert result.code == 0, result
    await asyncio.gather(
        *(desk.argosy("app", "sync", app_name, "--timeout", HANG) for app_name in ("mine", "stale", "leaky"))
    )
    await _until(desk, {"root": "Synced", "stale": "Synced", "tuned": "Synced", "mine": "Synced", "leaky": "Synced",
                        "crowded": "Synced"})  # fmt: skip
    await turn("after", *repo, "-o", "json")
    return story


def _texts(root: Path) -> dict[str, str]:
    paths = [path for path in root.rglob("*.yaml") if ".git" not in path.parts]
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.anyio
async def test_controller_write_becomes_an_ignore_rule_that_makes_the_app_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short version of the story below."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as desk:
        root, destination = desk.repository.path, {"server": "https://kubernetes.default.svc", "namespace": CONTROL}
        desk.repository.push({"apps/scaled.yaml": _application(desk, "scaled"), "scaled/a.yaml": config_map(a="one")})
        await desk.deliver("root", "apps", destination=destination)
        assert (await desk.argosy("app", "sync", "root", "--timeout", HANG)).code == 0
        assert (await desk.argosy("app", "sync", "scaled", "--timeout", HANG)).code == 0
        settings = ResourceKey("", "ConfigMap", "ml", "settings")
        await desk.cluster.patch(settings, {"data": {"a": "other"}}, manager="scaler")
        await _until(desk, {"scaled": "OutOfSync"})
        result = await desk.argosy("align", "--repo", str(root), "--write", "-o", "json")
        (report,) = (
            application
            for application in json.loads(result.out)["applications"]
            if application["application"] == "scaled"
        )
        assert (report["before"]["sync"], report["after"]["sync"]) == ("OutOfSync", "Synced"), result
        (rule,) = read_yaml((root / "apps/scaled.yaml").read_text())["spec"]["ignoreDifferences"]
        assert (rule["kind"], rule["jsonPointers"]) == ("ConfigMap", ["/data/a"])
        desk.repository.push({}, "Align")
        assert (await desk.argosy("app", "sync", "root", "--timeout", HANG)).code == 0
        await _until(desk, {"root": "Synced", "scaled": "Synced"})


def test_admission_and_controller_changes_become_one_ignore_rule_each(story: Story) -> None:
    proposals = story.app("tuned")["proposals"]
    rules = [rule for proposal in proposals for rule in proposal.get("ignoreDifferences", ())]
    other = {"group": "example.org", "kind": "Widget", "name": "other", "jsonPointers": ["/spec/speed"]}
    admitted = {"group": "example.org", "kind": "Widget", "name": "set", "jsonPointers": ["/spec/size"]}
    assert rules == ([other] if story.is_real else [other, admitted])
    assert {"SyncOption", "Drop"} <= set(story.kinds("tuned"))
    assert story.app("tuned")["after"]["sync"] == "Synced"


def test_many_fields_become_a_manager_rule_and_a_list_element_a_jq_rule(story: Story) -> None:
    report = story.app("crowded")
    rules = {rule["kind"]: rule for proposal in report["proposals"] for rule in proposal.get("ignoreDifferences", ())}
    assert rules["Widget"] == {"group": "example.org", "kind": "Widget", "managedFieldsManagers": ["planner"]}
    path = '.spec.template.spec.containers[] | select(.name == "main") | .workingDir'
    assert rules["Deployment"] == {"group": "apps", "kind": "Deployment", "jqPathExpressions": [path]}
    assert report["after"]["sync"] == "Synced"


def test_branch_behind_the_live_state_is_only_proposed(story: Story) -> None:
    report = story.app("behind")
    (branch,) = (proposal for proposal in report["proposals"] if proposal["kind"] == "Branch")
    assert not branch["certain"] and not branch["done"] and "behind the live state" in branch["text"]
    assert "old-behind" in story.files["write"]["apps/behind.yaml"]


def test_accept_flag_applies_the_proposed_branch_change(story: Story) -> None:
    report = story.app("behind", "accepted")
    (branch,) = (proposal for proposal in report["proposals"] if proposal["kind"] == "Branch")
    assert branch["done"] and report["files"] == ["apps/behind.yaml"] and report["afterSync"]["sync"] == "Synced"
    assert "to agree: argosy align behind --accept" in story.results["text"].out
    assert story.results["nobody"].code == 2 and "argosy align APP --accept" in story.results["nobody"].err


def test_working_tree_that_differs_from_the_tracked_branch_is_reported(story: Story) -> None:
    assert story.app("tuned")["byHand"] == []
    (manual_step,) = story.app("tuned", "elsewhere")["byHand"]
    assert manual_step.startswith(
        "it is created by root, which tracks main, where apps/tuned.yaml differs from this working tree"
    )


def test_branch_that_cannot_be_rendered_is_replaced_by_the_default_branch(story: Story) -> None:
    report = story.app("stale")
    (branch,) = (proposal for proposal in report["proposals"] if proposal["kind"] == "Branch")
    assert (branch["targetRevision"], branch["certain"], branch["done"]) == ("main", True, True)
    assert report["before"]["errors"] == ["ComparisonError"]
    assert (report["after"]["sync"], report["afterSync"]["sync"]) == ("OutOfSync", "Synced")
    assert not report["afterSync"]["errors"]


def test_include_selectors_is_disabled_for_leaking_labels(story: Story) -> None:
    report = story.app("leaky")
    (cure,) = (proposal for proposal in report["proposals"] if proposal["kind"] == "Selectors")
    assert cure["file"] == "leaky/kustomization.yaml" and report["files"] == ["leaky/kustomization.yaml"]
    assert report["afterSync"]["sync"] == "Synced" and "refused" not in report
    written = story.files["write"]["leaky/kustomization.yaml"]
    assert written == LABELS.replace("includeSelectors: true", "includeSelectors: false")


def test_kustomization_shared_with_another_application_is_not_changed(story: Story) -> None:
    for turn in ("json", "elder"):
        assert story.kinds("elder", turn) == ["Recreate"], turn
        assert story.app("elder", turn)["files"] == []
    assert story.app("younger")["afterSync"]["sync"] == "Synced"
    assert story.files["write"]["family/kustomization.yaml"] == LABELS


def test_recreation_is_only_proposed_and_the_app_stays_out_of_sync(story: Story) -> None:
    report = story.app("moved")
    (anew,) = (proposal for proposal in report["proposals"] if proposal["kind"] == "Recreate")
    assert not anew["certain"] and not anew["done"]
    assert report["afterSync"]["sync"] == "OutOfSync" and "immutable" in report["refused"][0]
    assert story.results["json"].code == 1


def test_recreate_flag_predicts_synced_after_the_recreation(story: Story) -> None:
    report = story.app("moved", "recreate")
    assert report["afterSync"]["sync"] == "Synced" and report["files"] == ["moved/deployment.yaml"]
    assert story.results["recreate"].code == 0


def test_as_documented_flag_ignores_the_selector_and_warns_about_it(story: Story) -> None:
    report = story.app("moved", "documented")
    (rule,) = (rule for proposal in report["proposals"] for rule in proposal.get("ignoreDifferences", ()))
    assert rule["jsonPointers"] == ["/spec/selector", "/spec/template/metadata/labels"]
    assert report["after"]["sync"] == "Synced"
    assert any(
        "can never be applied" in sentence
        for proposal in report["proposals"]
        for sentence in proposal.get("evidence", ())
    )
    assert [proposal["syncOptions"] for proposal in report["proposals"] if proposal["kind"] == "SyncOption"] == [
        ["RespectIgnoreDifferences=true"]
    ]


def test_unsynced_git_change_needs_a_sync_and_no_ignore_rule(story: Story) -> None:
    report = story.app("mine")
    assert story.kinds("mine") == ["Inform"]
    assert (report["after"]["sync"], report["afterSync"]["sync"]) == ("OutOfSync", "Synced")


def test_report_counts_applications_before_and_after(story: Story) -> None:
    report = story.data()
    assert report["before"] | {"errors": 0} == {
        "applications": 11, "synced": 3, "syncedPercent": 27.3, "healthy": report["before"]["healthy"],
        "healthyPercent": round(100 * report["before"]["healthy"] / 11, 1), "errors": 0,
    }  # fmt: skip
    assert (report["afterSync"]["synced"], report["afterSync"]["syncedPercent"]) == (9, 81.8)
    assert report["afterSync"]["errors"] == ["SyncError", "SyncError"]
    assert "9/11 (81.8%)" in story.results["text"].out


def test_parent_application_is_synced_first(story: Story) -> None:
    assert story.app("root")["after"]["sync"] == "OutOfSync" and story.app("root")["afterSync"]["sync"] == "Synced"
    assert story.data()["syncInOrder"][0] == "root"


def test_align_writes_no_files_without_the_write_flag(story: Story) -> None:
    first = story.files["json"]
    for turn in ("text", "documented", "recreate", "patch", "branch"):
        assert story.files[turn] == first, turn
    assert story.status == ""


def test_patch_output_applies_with_git_apply(story: Story, tmp_path: Path) -> None:
    for name, text in story.files["json"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    patch = story.results["patch"].out.encode()
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, check=True, env={**os.environ, "GIT_DIR": "none"})
    assert _texts(tmp_path) == story.files["write"]


def test_write_keeps_comments_and_removes_redundant_rules(story: Story) -> None:
    text = story.files["write"]["apps/tuned.yaml"]
    assert text.startswith("# tuned, written by hand\n") and "targetRevision: main # followed" in text
    assert "/status" not in text and "/metadata/generation" not in text
    assert read_yaml(text)["spec"]["syncPolicy"]["syncOptions"] == ["RespectIgnoreDifferences=true"]
    assert "targetRevision: main # followed" in story.files["write"]["apps/stale.yaml"]
    assert "commit -m 'Align Applications with the live state' -- apps/crowded.yaml" in story.results["write"].err
    assert "add -A" not in story.results["write"].err, "what else was changed there is nobody else's to commit"
    assert story.files["write"]["apps/good.yaml"] == story.files["json"]["apps/good.yaml"]


def test_branch_flag_commits_the_changed_files_to_a_branch(story: Story) -> None:
    subject, _, *paths = story.branch.splitlines()
    assert subject == "Align them"
    assert paths == ["apps/crowded.yaml", "apps/stale.yaml", "apps/tuned.yaml", "leaky/kustomization.yaml"]


def test_application_defined_twice_is_not_edited(story: Story) -> None:
    report = story.app("tuned", "twice")
    assert report["files"] == [] and "defined twice, in apps/tuned.yaml and apps/twice.yaml" in report["byHand"][0]


def test_align_without_a_working_tree_predicts_the_sync_status(story: Story) -> None:
    assert story.results["nowhere"].code == 0 and story.app("good", "nowhere")["after"]["sync"] == "Synced"


def test_predicted_sync_statuses_are_reached_after_the_sync(story: Story) -> None:
    for name in ("root", "stale", "tuned", "mine", "leaky", "good", "crowded"):
        report = story.app(name, "after")
        assert report["before"]["sync"] == "Synced", report
        assert not [
            proposal for proposal in report["proposals"] if proposal.get("certain") and proposal["kind"] != "Inform"
        ], report
