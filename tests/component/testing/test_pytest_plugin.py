"""The pytest plugin, run as a user runs it: in a repository created by `argosy init`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.features.init.service import initialize
from argosy.testing.user_repository_renders import Repo
from support.deadlines import TEST_HANG_SECONDS
from support.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "pytest.md"
STAGING = "argocd-apps/staging-application.yaml"
PLUGIN = "argosy.testing.plugin"

USED = """\
import subprocess, sys

WEB = '''
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: registry.example.com/web:1}]}}
'''


def test_an_edit_is_delivered_before_it_is_committed(sandbox, argosy_repo):
    overlay = argosy_repo.root / "deploy_model/overlays/dev/kustomization.yaml"
    before = overlay.read_text()
    sandbox.deliver("llmops-dev")
    overlay.write_text(before.replace('value: "500m"', 'value: "700m"'))
    try:
        delivered = sandbox.deliver("llmops-dev")
    finally:
        overlay.write_text(before)
    model = sandbox.list("isvc", "llmops-dev")[0]
    assert model["spec"]["predictor"]["model"]["resources"]["requests"]["cpu"] == "700m"
    assert len(delivered["status"]["history"]) >= 1


def test_objects_live_and_are_gone_with_the_test(sandbox):
    sandbox.apply(WEB, namespace="shop")
    sandbox.wait("deploy", "web", lambda web: web["status"]["readyReplicas"] == 2, namespace="shop")
    sandbox.patch("deploy", "web", {"spec": {"replicas": 1}}, namespace="shop")
    sandbox.wait("deploy", "web", lambda web: web["status"]["replicas"] == 1, namespace="shop")
    sandbox.delete("deploy", "web", namespace="shop")
    assert sandbox.get("deploy", "web", namespace="shop") is None


def test_the_next_has_a_cluster_of_its_own_that_others_reach(sandbox):
    assert sandbox.list("namespaces", labels="kubernetes.io/metadata.name=shop") == []
    command = [sys.executable, "-m", "argosy", "kubectl", "--kubeconfig", str(sandbox.kubeconfig), "get", "ns"]
    assert "kube-system" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_folder_is_rendered_and_a_field_has_its_line(rendered):
    found = rendered("deploy_model/overlays/dev")
    assert [each["kind"] for each in found] == [name.partition("/")[0] for name in found.names]
    model = ("InferenceService", "dev-qwen25-05b-instruct")
    place = rendered("llmops-dev").place(*model, "spec", "predictor", "minReplicas")
    assert place.startswith("deploy_model/") and place.rpartition(":")[2].isdigit()
"""
WRONG = """\
def test_a_name(rendered):
    rendered("llmops-stagin")


def test_a_kind(rendered):
    rendered("llmops-dev").one("Deployment")


def test_a_delivery(sandbox):
    sandbox.deliver("llmops-staging", seconds=300)


def test_a_wait(sandbox):
    sandbox.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    sandbox.wait("cm", "a", lambda found: found["data"]["b"], seconds=0.1)
"""
STRANGERS = """\
import pytest


@pytest.fixture
def sandbox():
    return "mine"


@pytest.fixture(params=["a", "b"])
def argosy_app(request):
    return request.param


def test_fixtures_of_the_same_name_are_the_users(sandbox, argosy_app):
    assert sandbox == "mine" and argosy_app in "ab"


@pytest.mark.parametrize("argosy_app", ["c"])
def test_a_mark_too(argosy_app):
    assert argosy_app == "c"


def test_nothing_of_argosy_was_loaded():
    import sys

    assert sorted(name for name in sys.modules if name.startswith("argosy")) == ["argosy", "argosy.testing", "PLUGIN"]
""".replace("PLUGIN", PLUGIN)


def create_repository(folder: Path) -> Path:
    initialize(folder / "models", "llmops", "", is_committed=True)
    (folder / "models" / "tests").mkdir()
    return folder / "models"


def ran(folder: Path, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:argosy", "-p", PLUGIN, *words]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"HOME": str(folder.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # not those of this test run
    options = {"cwd": folder, "env": env, "timeout": TEST_HANG_SECONDS}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of pytest in a valid repository."""
    repository = create_repository(tmp_path_factory.mktemp("sound"))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (repository / "tests" / "test_page.py").write_text(blocks[0])
    (repository / "tests" / "test_used.py").write_text(USED)
    return ran(repository, "--argosy-sync", "-v", "--override-ini", "testpaths=tests")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of pytest in an invalid repository, with tests that fail."""
    repository = create_repository(tmp_path_factory.mktemp("wrong"))
    overlay = repository / "deploy_model" / "overlays" / "staging" / "kustomization.yaml"
    overlay.write_text(overlay.read_text() + "generators: [nothing.yaml]\n")
    app = repository / STAGING
    app.write_text(app.read_text().replace("    targetRevision:", "    nosuch: 1\n    targetRevision:"))
    loose = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: hunter2-and-more}\n"
    (repository / "notes.yaml").write_text(loose)
    (repository / "tests" / "test_wrong.py").write_text(WRONG)
    return ran(repository, "--argosy", "-v", code=1)


@pytest.mark.tier("all")
def test_documented_tests_pass_in_a_new_repository(sound: str) -> None:
    assert len(re.findall(r"^tests/test_page\.py::\S+ PASSED", sound, re.MULTILINE)) == 6
    assert len(re.findall(r"^tests/test_used\.py::\S+ PASSED", sound, re.MULTILINE)) == 4


@pytest.mark.tier("all")
def test_every_application_is_tested_without_python_code(sound: str) -> None:
    for name in ("dev", "staging", "production"):
        test_names = re.findall(
            rf"^argocd-apps/{name}-application\.yaml::llmops-{name}::(\w+) PASSED", sound, re.MULTILINE
        )
        assert test_names == ["render", "schema", "policy", "sync"]


def test_failures_say_what_to_do_without_an_argosy_traceback(wrong: str) -> None:
    assert "there is no Application or folder llmops-stagin; did you mean llmops-staging?" in wrong
    assert "llmops-dev: there is no Deployment; it renders to Secret/" in wrong
    assert re.search(r"llmops-staging is \w+, \w+:\nE +\w*Error: .*nothing\.yaml", wrong), wrong
    assert "cm/a -n default: condition not met in 0.1 s" in wrong
    assert "src/argosy" not in wrong and len(re.findall(r"^tests/\S+ FAILED", wrong, re.MULTILINE)) == 4


def test_problems_in_git_fail_at_their_file(wrong: str) -> None:
    assert sorted(re.findall(r"^([^t]\S+) FAILED", wrong, re.MULTILINE)) == [
        f"{STAGING}::llmops-staging::render",
        f"{STAGING}::llmops-staging::schema",
        "notes.yaml::policy",
    ]
    assert f"{STAGING}:" in wrong and "AGY151" in wrong and "AGY601" in wrong


@pytest.mark.tier("all")
def test_plugin_does_not_affect_a_run_that_does_not_use_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "test_strangers.py").write_text(STRANGERS)
    (tmp_path / "run" / "wrong.yaml").write_text("kind: [")
    assert "4 passed" in ran(tmp_path / "run", "-q")


@pytest.mark.tier("all")
def test_missing_applications_and_invalid_paths_are_reported(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "test_each.py").write_text("def test_each(argosy_app): pass\n")
    output = ran(tmp_path / "run", code=2)
    assert "there is no Application below" in output and "set argosy_path, or give --argosy-path" in output
    with pytest.raises(UserError, match="correct argosy_path or --argosy-path"):
        Repo(tmp_path / "nowhere")


@pytest.mark.tier("all")
def test_schema_and_policy_are_skipped_if_rendering_fails(tmp_path: Path) -> None:
    folder = create_repository(tmp_path)
    (folder / "deploy_model" / "overlays" / "dev" / "kustomization.yaml").write_text("resources: [../gone]\n")
    output = ran(folder, "--argosy", "-v", "-rs", "-k", "llmops-dev", "argocd-apps/dev-application.yaml", code=1)
    assert re.search(r"llmops-dev::render FAILED", output) and "the Application does not render" in output
    assert re.search(r"llmops-dev::schema SKIPPED", output) and re.search(r"llmops-dev::policy SKIPPED", output)
