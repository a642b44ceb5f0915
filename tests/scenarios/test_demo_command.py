"""`argosy demo` as a user runs it: initial state, changes by push and sync, failure drills and shutdown."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clusters import KUBECTL, Endpoint
from support.demo import Demo, demo

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")
OVERLAYS = "llmops-via-argocd/deploy_model/overlays"
DEV_MODEL = ("inferenceservice/dev-qwen25-05b-instruct", "-n", "llmops-dev")
STAGING_MODEL = ("inferenceservice/staging-qwen25-05b-instruct", "-n", "llmops-staging")
AT_FIRST = {
    "llmops-dev": ("Synced", "Healthy"),
    "llmops-staging": ("OutOfSync", "Healthy"),
    "llmops-production": ("OutOfSync", "Missing"),
}
CPU = "{.spec.predictor.model.resources.limits.cpu}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo in its initial state."""
    with demo(tmp_path_factory.mktemp("demo"), "--api-port", "0") as running:
        running.until(lambda: {name: running.words(name) for name in running.apps()} == AT_FIRST)
        yield running


@pytest.fixture(scope="module")
def work(shown: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the demo's repository, to push from."""
    folder = tmp_path_factory.mktemp("work") / "llmops-demo"
    shown.git("clone", "-q", shown.where["repository"], str(folder))
    return folder


def get(shown: Demo, path: str) -> dict[str, Any]:
    """Read from the API server without a subprocess, because tests poll this."""
    answer = Endpoint.of_kubeconfig(Path(shown.where["kubeconfig"]).read_text()).request("GET", path)
    assert answer.code == 200, answer
    content: dict[str, Any] = answer.json()
    return content


def resources_of_dev(shown: Demo) -> dict[str, Any]:
    models = "/apis/serving.kserve.io/v1beta1/namespaces/llmops-dev/inferenceservices"
    resources = get(shown, f"{models}/dev-qwen25-05b-instruct")["spec"]["predictor"]["model"]["resources"]
    return dict(resources)


def push(shown: Demo, work: Path, file: str, old: str, new: str) -> None:
    path = work / file
    shown.git("-C", str(work), "pull", "-q", "--rebase")
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    shown.git("-C", str(work), "commit", "-qam", f"{file}: {new}")
    shown.git("-C", str(work), "push", "-q")


@pytest.mark.tier("all")
def test_initial_state_has_dev_synced_and_staging_one_field_behind(shown: Demo) -> None:
    assert len(shown.apps()["llmops-staging"]["status"]["history"]) == 2
    output = shown.argosy("app", "diff", "llmops-staging", code=1)
    assert re.search(r'spec\.predictor\.model\.resources\.limits\.cpu +"2" → "3"', output)
    assert output.count("→") == 1 and output.count("no drift: set by kserve-webhook") == 2


@pytest.mark.tier("all")
def test_demo_prints_its_addresses_and_commands_to_try(shown: Demo) -> None:
    assert shown.where["ready"] and shown.where["repository"] in shown.printed and shown.where["api"] in shown.printed
    assert f"export KUBECONFIG={shown.where['kubeconfig']} PATH=" in shown.printed
    for line in ("argosy app list", "argosy app diff llmops-staging", "argosy app sync llmops-staging"):
        assert f"  {line}\n" in shown.printed
    assert "simulated" in shown.printed


@pytest.mark.tier("all")
def test_sandbox_stop_refuses_to_stop_a_demo(shown: Demo) -> None:
    output = shown.argosy_said("sandbox", "stop", code=2)
    assert "a demo is running there, not a sandbox" in output and "argosy demo stop" in output
    assert shown.argosy("demo", "status")


def test_push_to_the_dev_overlay_changes_only_dev(shown: Demo, work: Path) -> None:
    before = {name: shown.words(name) for name in ("llmops-staging", "llmops-production")}
    push(shown, work, f"{OVERLAYS}/dev/kustomization.yaml", 'value: "500m"', 'value: "600m"')
    shown.until(lambda: resources_of_dev(shown)["requests"]["cpu"] == "600m")
    shown.until(lambda: shown.words("llmops-dev") == ("Synced", "Healthy"))
    assert {name: shown.words(name) for name in before} == before


@pytest.mark.tier("all")
def test_self_heal_reverts_a_live_edit_in_dev(shown: Demo) -> None:
    expected = resources_of_dev(shown)
    patch = '{"spec":{"predictor":{"model":{"resources":{"limits":{"cpu":"10"}}}}}}'
    shown.kubectl("patch", *DEV_MODEL, "--type", "merge", "-p", patch)
    shown.until(lambda: resources_of_dev(shown) == expected)


@pytest.mark.tier("all")
def test_sync_of_staging_gives_the_table_of_the_guide(shown: Demo) -> None:
    shown.argosy("app", "sync", "llmops-staging")
    shown.until(lambda: shown.words("llmops-staging") == ("Synced", "Healthy"))
    table = shown.kubectl("get", "applications", "-n", "openshift-gitops")
    assert [line.split()[:4] for line in table.splitlines()] == [
        ["NAME", "SYNC", "STATUS", "HEALTH"],
        ["llmops-dev", "Synced", "Healthy"],
        ["llmops-production", "OutOfSync", "Missing"],
        ["llmops-staging", "Synced", "Healthy"],
    ]


BASE = "llmops-via-argocd/deploy_model/base/kustomization.yaml"
LAST = "  - inferenceservice.yaml\n"
CARD = """generatorOptions: {disableNameSuffixHash: true}
configMapGenerator:
  - {name: model-card, literals: [owner=ann]}
"""


@pytest.mark.tier("all")
def test_objects_follow_git_in_dev_but_in_staging_only_by_a_pruning_sync(shown: Demo, work: Path) -> None:
    def has_card(tier: str) -> bool:
        return "model-card" in shown.kubectl("get", "configmaps", "-n", f"llmops-{tier}", "-o", "name")

    push(shown, work, BASE, LAST, LAST + CARD)
    shown.until(lambda: has_card("dev"))
    shown.until(lambda: shown.words("llmops-staging")[0] == "OutOfSync")
    assert not has_card("staging") and shown.words("llmops-production")[0] == "OutOfSync"
    shown.argosy("app", "sync", "llmops-staging")
    assert has_card("staging")
    push(shown, work, BASE, CARD, "")
    shown.until(lambda: not has_card("dev"))
    shown.until(lambda: shown.words("llmops-staging")[0] == "OutOfSync")
    shown.argosy("app", "sync", "llmops-staging")
    assert has_card("staging")
    shown.argosy("app", "sync", "llmops-staging", "--prune")
    assert not has_card("staging")
    shown.until(lambda: shown.words("llmops-staging") == ("Synced", "Healthy"))


@pytest.mark.tier("all")
def test_history_and_rollback_work_in_staging_but_not_with_automated_sync(shown: Demo) -> None:
    history = shown.apps()["llmops-staging"]["status"]["history"]
    lines = shown.argosy("app", "history", "llmops-staging").splitlines()[1:]
    assert [line.split()[0] for line in lines] == [str(entry["id"]) for entry in history]
    assert all(
        entry["revision"][:7] in line and entry["deployedAt"][:10] in line for entry, line in zip(history, lines)
    )
    shown.argosy("app", "rollback", "llmops-staging", str(history[0]["id"]))
    assert shown.kubectl("get", *STAGING_MODEL, "-o", f"jsonpath={CPU}") == "2"
    shown.until(lambda: shown.words("llmops-staging")[0] == "OutOfSync")
    shown.argosy("app", "rollback", "llmops-dev", "0", code=5)
    shown.argosy("app", "sync", "llmops-staging")
    shown.until(lambda: shown.words("llmops-staging") == ("Synced", "Healthy"))


SIGNS = {
    "model": ("llmops-staging", "Synced", "Degraded"),
    "image": ("llmops-dev", "Synced", "Progressing"),
    "drift": ("llmops-staging", "OutOfSync", "Healthy"),
    "branch": ("llmops-dev", "Unknown", "Healthy"),
    "lua": ("llmops-dev", "Synced", "Unknown"),
}


@pytest.mark.tier("all")
@pytest.mark.parametrize("story", SIGNS)
def test_failure_drill_changes_the_status_and_fix_undoes_it(shown: Demo, story: str) -> None:
    app, sync, health = SIGNS[story]
    if shown.words(app) == ("OutOfSync", "Healthy"):  # the initial state
        shown.argosy("app", "sync", app)
    shown.until(lambda: shown.words(app) == ("Synced", "Healthy"))
    assert "argosy demo fix" in shown.argosy("demo", "break", story)
    shown.until(lambda: shown.words(app) == (sync, health))
    shown.argosy("demo", "break", story, code=2)
    assert shown.argosy("demo", "fix") != "no failure drill is active\n"
    shown.until(lambda: shown.words(app) == ("Synced", "Healthy"))
    assert shown.argosy("demo", "fix") == "no failure drill is active\n"


@pytest.mark.tier("all")
def test_logs_named_in_the_health_guide_show_the_lua_error_and_the_operator(shown: Demo) -> None:
    shown.argosy("demo", "break", "lua")
    try:
        shown.until(lambda: shown.words("llmops-dev")[1] == "Unknown")
        for workload in ("deployment/cluster", "statefulset/openshift-gitops-application-controller"):
            lines = shown.kubectl("logs", "-n", "openshift-gitops", workload, "--tail=100").splitlines()
            key = "resource.customizations.health.serving.kserve.io_InferenceService"
            assert [line for line in lines if "health check failed" in line and "Lua error" in line and key in line]
        for namespace in ("openshift-gitops", "openshift-gitops-operator"):
            output = shown.kubectl("logs", "-n", namespace, "deployment/openshift-gitops-operator", "--tail=50")
            assert "ConfigMap argocd-cm differs: replacing it" in output
    finally:
        shown.argosy("demo", "fix")
    shown.until(lambda: shown.words("llmops-dev") == ("Synced", "Healthy"))


@pytest.mark.tier("all")
def test_failure_drill_undone_without_fix_is_no_longer_active(shown: Demo, work: Path) -> None:
    assert "failure drills" not in shown.argosy("demo", "status")
    shown.argosy("demo", "break", "image")
    shown.argosy("demo", "break", "drift")
    assert "failure drills  image, drift (undo them with: argosy demo fix)\n" in shown.argosy("demo", "status")
    assert "kubectl-edit" in shown.argosy("app", "diff", "llmops-staging", code=1)
    shown.git("-C", str(work), "pull", "-q", "--rebase")
    shown.git("-C", str(work), "revert", "--no-edit", "HEAD")
    shown.git("-C", str(work), "push", "-q")
    shown.argosy("app", "sync", "llmops-staging")
    assert "failure drills" not in shown.argosy("demo", "status")
    for story in ("image", "drift"):
        shown.argosy("demo", "break", story)
    assert shown.argosy("demo", "fix").count("\n") == 2
    assert shown.argosy("demo", "fix") == "no failure drill is active\n"


@pytest.mark.tier("all")
def test_ctrl_c_stops_the_demo_and_leaves_no_files_but_its_lock(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with demo(tmp_path / "home", "--api-port", "0", "--no-engine") as running:
        folder = Path(running.where["dataDir"])
        assert {name: (app.get("status") or {}) for name, app in running.apps().items()} == {
            "llmops-dev": {}, "llmops-staging": {}, "llmops-production": {},
        }  # fmt: skip
        assert "argosy controller" in running.printed and "argosy app sync" not in running.printed
        waited = running.argosy_said("app", "wait", "llmops-dev", "--timeout", "1", code=4)
        assert "not reconciled yet; is a controller running? argosy controller" in waited
        assert "when an engine runs: argosy controller" in running.argosy("demo", "break", "model")
        began = time.monotonic()
        running.end(signal.SIGINT)
        record_property("seconds until it ended", time.monotonic() - began)
        assert running.process.returncode == 0
        ignored_paths = (running.log, running.home / ".kube")  # this test's log, and kubectl's cache
        files = [file for file in running.home.rglob("*") if file.is_file()]
        assert [file for file in files if not any(map(file.is_relative_to, ignored_paths))] == [folder / "lock"]
        assert "not running" in running.argosy("demo", "status", code=1)


@pytest.mark.tier("all")
def test_demo_engine_holds_the_controller_lease(shown: Demo) -> None:
    lease = ("lease/argosy-application-controller", "-n", "openshift-gitops")
    assert shown.kubectl("get", *lease, "-o", "jsonpath={.spec.holderIdentity}") == "argosy-demo"
