"""The GitOps workflow in a demo, in the sandbox and on a real API server: push, compare, sync, prune, roll back.

The tests run in order; each continues where the previous one ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters import KUBECTL
from support.demo import Demo, demo
from support.demo_on_real_server import demo_elsewhere
from support.message_servers import http_inbox
from support.real_server import REAL

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)"),
]
OVERLAYS = "llmops-via-argocd/deploy_model/overlays"
NAMES = {"dev": "llmops-dev", "staging": "llmops-staging", "production": "llmops-prod"}
PREFIX = {"dev": "dev-", "staging": "staging-", "production": "prod-"}
LIMIT = "limits/cpu\n        value: "
TEN = "sed -i '/ limits:$/,/ memory:/s/ cpu: .*/ cpu: \"10\"/'"
GOOD, DRIFTED = ("Synced", "Healthy"), ("OutOfSync", "Healthy")


@pytest.fixture(scope="module", params=["demo", REAL])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    home = tmp_path_factory.mktemp("demo")
    with demo_elsewhere(home) if request.param == "real" else demo(home, "--api-port", "0") as running:
        yield running


@pytest.fixture(scope="module")
def work(shown: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work") / "llmops-demo"
    shown.git("clone", "-q", shown.where["repository"], str(folder))
    return folder


def overlay(tier: str) -> str:
    return f"{OVERLAYS}/{tier}/kustomization.yaml"


def edit(work: Path, tier: str, old: str, new: str) -> None:
    file = work / overlay(tier)
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def push(shown: Demo, work: Path, message: str) -> str:
    shown.git("-C", str(work), "add", "-A")
    shown.git("-C", str(work), "commit", "-qm", message)
    shown.git("-C", str(work), "push", "-q")
    return shown.git("-C", str(work), "rev-parse", "HEAD").strip()


def model(tier: str) -> tuple[str, ...]:
    return f"inferenceservice/{PREFIX[tier]}qwen25-05b-instruct", "-n", NAMES[tier]


def cpus(shown: Demo, tier: str) -> str:
    jsonpath = "jsonpath={.spec.predictor.model.resources.limits.cpu}"
    return shown.kubectl("get", *model(tier), "-o", jsonpath)


def history(shown: Demo, name: str) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = shown.apps()[name]["status"].get("history", [])
    return entries


def test_dev_auto_syncs_its_own_change_and_other_environments_stay(shown: Demo, work: Path) -> None:
    before = {"llmops-staging": ("OutOfSync", "Healthy"), "llmops-production": ("OutOfSync", "Missing")}
    shown.until(lambda: {name: shown.words(name) for name in before} == before)
    edit(work, "dev", f'{LIMIT}"2"', f'{LIMIT}"3"')
    commit = push(shown, work, "dev: three CPUs")
    shown.until(lambda: cpus(shown, "dev") == "3" and shown.words("llmops-dev") == GOOD)
    assert shown.apps()["llmops-dev"]["status"]["sync"]["revision"] == commit
    assert {name: shown.words(name) for name in before} == before


def test_staging_waits_for_manual_sync_and_diff_shows_file_and_line(shown: Demo, work: Path) -> None:
    shown.argosy("app", "sync", "llmops-staging")
    shown.until(lambda: shown.words("llmops-staging") == GOOD)
    edit(work, "staging", f'{LIMIT}"3"', f'{LIMIT}"5"')
    push(shown, work, "staging: five CPUs")
    shown.until(lambda: shown.words("llmops-staging") == DRIFTED)
    assert cpus(shown, "staging") == "3"
    lines = (work / overlay("staging")).read_text().splitlines()
    number = lines.index('        value: "5"') + 1
    diff = shown.argosy("app", "diff", "llmops-staging", code=1)
    assert diff.count("→") == 1
    [changed] = [line.split() for line in diff.splitlines() if "→" in line]
    assert changed[:4] == ["spec.predictor.model.resources.limits.cpu", '"3"', "→", '"5"']
    assert f"changed in Git ({overlay('staging')}:{number}, " in diff and '"staging: five CPUs")' in diff
    [item] = json.loads(shown.argosy("app", "diff", "llmops-staging", "-o", "json", code=1))["items"]
    assert [field["writtenIn"] for field in item["fields"]] == [f"{overlay('staging')}:{number}"]
    shown.argosy("app", "sync", "llmops-staging")
    shown.until(lambda: shown.words("llmops-staging") == GOOD)
    assert cpus(shown, "staging") == "5"


def test_production_stays_missing_until_it_is_synced_manually(shown: Demo) -> None:
    assert shown.words("llmops-production") == ("OutOfSync", "Missing")
    shown.argosy("app", "sync", "llmops-production")
    shown.until(lambda: shown.words("llmops-production") == GOOD)
    assert {name: shown.words(name) for name in shown.apps()} == dict.fromkeys(shown.apps(), GOOD)


def test_drift_is_self_healed_in_dev_and_only_reported_in_production(shown: Demo) -> None:
    for tier in ("dev", "production"):
        assert " edited\n" in shown.kubectl("edit", *model(tier), editor=TEN)
    shown.until(lambda: cpus(shown, "dev") == "3" and shown.words("llmops-dev") == GOOD)
    shown.until(lambda: shown.words("llmops-production")[0] == "OutOfSync")
    assert cpus(shown, "production") == "10"
    shown.argosy("app", "sync", "llmops-production")
    shown.until(lambda: shown.words("llmops-production") == GOOD)
    assert cpus(shown, "production") == "4"


SUBSCRIBED = "notifications.argoproj.io/subscribe.on-drift.chat"
CHAT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "argocd-notifications-cm", "namespace": "openshift-gitops"},
}


def test_drift_notification_is_sent_once_with_object_field_and_manager(shown: Demo, tmp_path: Path) -> None:
    app = ("application/llmops-production", "-n", "openshift-gitops")
    with http_inbox() as inbox:
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps({**CHAT, "data": {"service.webhook.chat": f"url: {inbox.url}"}}))
        shown.kubectl("apply", "-f", str(settings))
        shown.kubectl("annotate", *app, f"{SUBSCRIBED}=")
        shown.kubectl("edit", *model("production"), editor=TEN)
        shown.until(lambda: "NotificationSent" in shown.kubectl("get", "events", "-n", "openshift-gitops"))
        shown.argosy("app", "sync", "llmops-production")
        shown.until(lambda: shown.words("llmops-production") == GOOD)
        shown.kubectl("annotate", *app, f"{SUBSCRIBED}-")
        [letter] = inbox.letters
    drifted_field = "InferenceService llmops-prod/prod-qwen25-05b-instruct: .spec.predictor.model.resources.limits.cpu"
    assert f"{drifted_field}, set by kubectl-edit at " in letter.body.decode()
    assert "on-drift" in shown.argosy("notifications", "history", "llmops-production")


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: notes\ndata:\n  about: nothing\n"


def test_object_removed_from_git_is_pruned_in_dev_but_in_staging_only_with_prune_flag(shown: Demo, work: Path) -> None:
    base = work / "llmops-via-argocd/deploy_model/base"
    listed = (base / "kustomization.yaml").read_text()
    assert "resources:\n" in listed
    (base / "notes.yaml").write_text(CONFIG)
    (base / "kustomization.yaml").write_text(listed.replace("resources:\n", "resources:\n  - notes.yaml\n"))
    push(shown, work, "notes for all")
    has = ("get", "configmap", "--ignore-not-found", "-o", "name")
    shown.until(lambda: shown.kubectl(*has, "dev-notes", "-n", "llmops-dev"))
    shown.until(lambda: shown.words("llmops-staging")[0] == "OutOfSync")
    shown.argosy("app", "sync", "llmops-staging")
    (base / "notes.yaml").unlink()
    (base / "kustomization.yaml").write_text(listed)
    push(shown, work, "no notes")
    shown.until(lambda: not shown.kubectl(*has, "dev-notes", "-n", "llmops-dev"))
    shown.until(lambda: shown.words("llmops-staging")[0] == "OutOfSync")
    shown.argosy("app", "sync", "llmops-staging")
    assert shown.kubectl(*has, "staging-notes", "-n", "llmops-staging")
    shown.argosy("app", "sync", "llmops-staging", "--prune")
    assert not shown.kubectl(*has, "staging-notes", "-n", "llmops-staging")
    shown.until(lambda: shown.words("llmops-staging") == GOOD)


def test_rollback_of_production_restores_old_revision_and_is_out_of_sync(shown: Demo, work: Path) -> None:
    edit(work, "production", f'{LIMIT}"4"', f'{LIMIT}"6"')
    push(shown, work, "production: six CPUs")
    shown.until(lambda: shown.words("llmops-production")[0] == "OutOfSync")
    shown.argosy("app", "sync", "llmops-production")
    shown.until(lambda: shown.words("llmops-production") == GOOD)
    entries = history(shown, "llmops-production")
    assert all(entry["revision"] and entry["deployedAt"] for entry in entries)
    shown.argosy("app", "rollback", "llmops-production", str(entries[0]["id"]))
    assert cpus(shown, "production") == "4"
    shown.until(lambda: shown.words("llmops-production") == DRIFTED)
    assert len(history(shown, "llmops-production")) == len(entries) + 1


def test_rollback_of_auto_synced_dev_needs_hold_and_lasts_until_release(shown: Demo) -> None:
    first = history(shown, "llmops-dev")[0]["id"]
    shown.argosy("app", "rollback", "llmops-dev", str(first), code=5)
    assert cpus(shown, "dev") == "3"
    shown.argosy("app", "rollback", "llmops-dev", str(first), "--hold")
    shown.until(lambda: cpus(shown, "dev") == "2" and shown.words("llmops-dev")[0] == "OutOfSync")
    shown.argosy("app", "release", "llmops-dev")
    shown.until(lambda: cpus(shown, "dev") == "3" and shown.words("llmops-dev") == GOOD)


def test_broken_health_check_does_not_block_syncs(shown: Demo, work: Path) -> None:
    shown.argosy("demo", "break", "lua")
    shown.until(lambda: shown.words("llmops-dev") == ("Synced", "Unknown"))
    edit(work, "dev", f'{LIMIT}"3"', f'{LIMIT}"5"')
    commit = push(shown, work, "dev: five CPUs")
    shown.until(lambda: cpus(shown, "dev") == "5" and shown.words("llmops-dev")[0] == "Synced")
    assert shown.apps()["llmops-dev"]["status"]["sync"]["revision"] == commit
    shown.argosy("app", "sync", "llmops-production")
    assert cpus(shown, "production") == "6"
    shown.argosy("demo", "fix")
    shown.until(lambda: {shown.words(name) for name in shown.apps()} == {GOOD})


def conditions(shown: Demo, name: str) -> dict[str, str]:
    return {condition["type"]: condition["message"] for condition in shown.apps()[name]["status"].get("conditions", [])}


def test_unknown_branch_causes_comparison_error_until_it_is_corrected(shown: Demo) -> None:
    uid = shown.kubectl("get", *model("dev"), "-o", "jsonpath={.metadata.uid}")
    shown.argosy("app", "set", "llmops-dev", "--revision", "nowhere")
    shown.until(lambda: "nowhere" in conditions(shown, "llmops-dev")["ComparisonError"])
    shown.until(lambda: shown.words("llmops-dev")[0] == "Unknown")
    assert "ComparisonError" in shown.argosy("app", "list")
    assert shown.kubectl("get", *model("dev"), "-o", "jsonpath={.metadata.uid}") == uid
    shown.argosy("app", "set", "llmops-dev", "--revision", "main")
    shown.until(lambda: shown.words("llmops-dev") == GOOD and not conditions(shown, "llmops-dev"))


def test_models_and_routes_are_listed_across_all_namespaces(shown: Demo) -> None:
    for kind in ("inferenceservice", "route"):
        table = shown.kubectl("get", kind, "--all-namespaces", "--no-headers")
        rows = [line.split()[:2] for line in table.splitlines() if "qwen25-05b" in line]
        assert rows == [
            [NAMES[tier], f"{PREFIX[tier]}qwen25-05b-instruct"] for tier in ("dev", "production", "staging")
        ]
