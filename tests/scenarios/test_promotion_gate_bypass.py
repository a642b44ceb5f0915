"""Attempts to bypass promotion gates, accidental or deliberate: each one is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.features.promote.environment_cluster_state import EnvironmentClusterState
from argosy.features.promote.environments_at_commit import RepositorySnapshot
from argosy.features.promote.gates import NotebookRun
from argosy.features.promote.plan import PromotionPlan, PromotionPlanner, PromotionRequest
from argosy.gitops.workspace.git_repository import GitRepository
from support.promotion_repository import DELIVERY, Shelf, begin, copy_of

NOW = datetime(2126, 5, 4, 12, tzinfo=UTC)
LONG_AGO = "2126-01-01T00:00:00Z"
GATED = DELIVERY.replace("after: dev}", "after: dev, gates: [{healthy: 10m}, {soak: 1h}, {notebook: eval}]}").replace(
    "path: dev, ", "path: dev, namespace: web-dev, "
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("begun") / "web")


@pytest.fixture
def web(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return copy_of(begun, tmp_path, monkeypatch)


def plan_promotion(shelf: Shelf, request: PromotionRequest, runs: str, path: str = "dev") -> PromotionPlan:
    """Return the plan for a cluster where dev runs `runs` and has long been Healthy."""
    source: dict[str, Any] = {"repoURL": "https://example.com/web.git", "path": path}
    status = {
        "health": {"status": "Healthy", "lastTransitionTime": LONG_AGO},
        "sync": {"status": "Synced", "revision": runs},
        "history": [{"revision": runs, "deployedAt": LONG_AGO}],
    }
    app = {"metadata": {"name": "web-dev"}, "spec": {"source": source}, "status": status}
    notebooks: dict[tuple[str, str], NotebookRun | None] = {("dev", "eval"): NotebookRun("Succeeded", NOW)}
    repository = GitRepository.open(shelf.folder)
    assert repository is not None
    survey = RepositorySnapshot(repository, lambda _: None)
    try:
        return PromotionPlanner(survey, EnvironmentClusterState("here", {"dev": app}, notebooks), NOW).plan(request)
    finally:
        survey.close()


@pytest.mark.tier("all")
def test_running_release_does_not_open_gates_for_an_older_release(web: Shelf) -> None:
    web.write("argosy.yaml", GATED)
    old = web.commit("gates")
    assert plan_promotion(web, PromotionRequest("staging"), old).is_open
    new = web.pin("dev", "1.2")
    assert plan_promotion(web, PromotionRequest("staging"), new).is_open
    plan = plan_promotion(web, PromotionRequest("staging", "r2"), new)
    assert [gate.kind for gate in plan.closed_gates] == ["healthy", "soak", "notebook"]
    assert "web-dev runs a different release now" in plan.closed_gates[0].reason


@pytest.mark.tier("all")
def test_unrelated_commit_does_not_close_gates(web: Shelf) -> None:
    web.write("argosy.yaml", GATED)
    web.commit("gates")
    web.write("README.md", "words")
    assert plan_promotion(web, PromotionRequest("staging"), web.commit("words")).is_open


def argued(web: Shelf, environment: str, value: str) -> None:
    text = web.images(environment)
    if "-safe" in text:
        web.write(f"{environment}/kustomization.yaml", text.replace("-safe", value) + "\n")
        web.commit(f"{environment}: {value}")
        return
    operation = f'- {{op: add, path: /spec/template/spec/containers/0/args, value: ["{value}"]}}'
    patch = f"patches:\n  - target: {{kind: Deployment, name: web}}\n    patch: |-\n      {operation}\n"
    web.write(f"{environment}/kustomization.yaml", text.rstrip("\n") + "\n" + patch)
    web.commit(f"{environment}: {value}")


@pytest.mark.tier("all")
def test_approval_does_not_cover_later_parameter_changes(web: Shelf) -> None:
    for environment in ("dev", "staging", "production"):
        argued(web, environment, "-safe")
    web.argosy("run", "--to", "staging")
    web.argosy("approve", "--to", "production")
    web.argosy("run", "--to", "production")
    web.pin("dev", "1.2")
    argued(web, "dev", "-safe")
    web.argosy("run", "--to", "staging")
    web.argosy("approve", "--to", "production")
    argued(web, "staging", "-unsafe")
    refused = web.argosy("run", "--to", "production", code=1)
    assert "not approved yet" in refused.err and "-unsafe" not in web.images("production")


@pytest.mark.tier("all")
def test_manually_written_version_needs_a_reason(web: Shelf) -> None:
    web.write("argosy.yaml", DELIVERY.replace("    gates:\n      - approval: leads\n", ""))
    web.commit("no approval")
    web.argosy("run", "--to", "staging")
    web.argosy("run", "--to", "production")
    web.write("staging/kustomization.yaml", web.images("staging").replace("1.1", "6.6") + "\n")
    web.commit("hot")
    refused = web.argosy("run", "--to", "production", code=1)
    assert "was written to staging by hand, and has not been in dev" in refused.err
    web.argosy("run", "--to", "production", "--reason", "the house is on fire")
    assert "by hand, and has not been in dev: the house is on fire" in web.git("log", "-1", "--format=%B")
    web.pin("dev", "7.7")
    web.write("staging/kustomization.yaml", web.images("staging").replace("6.6", "7.7") + "\n")
    web.commit("copied what dev has")
    web.argosy("run", "--to", "production")


@pytest.mark.tier("all")
def test_every_rolled_back_release_stays_blocked(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.argosy("rollback", "staging", "--reason", "first")
    web.pin("dev", "1.2")
    web.argosy("run", "--to", "staging")
    web.argosy("rollback", "staging", "--reason", "second")
    refused = web.argosy("run", "r2", "--to", "staging", code=1)
    assert "rolled back: from r2, by ann@example.com: first" in refused.err


@pytest.mark.tier("all")
def test_rolled_back_release_needs_a_new_approval(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.argosy("approve", "--to", "production")
    web.argosy("run", "--to", "production")
    web.argosy("rollback", "production", "--reason", "wrong answers")
    web.argosy("resume", "production")
    reason = "not approved since it was rolled back"
    assert reason in web.argosy("run", "--to", "production", code=1).err
    web.pin("dev", "1.2")
    web.argosy("run", "--to", "staging")
    assert reason in web.argosy("run", "r2", "--to", "production", code=1).err
    web.argosy("approve", "r2", "--to", "production")
    web.argosy("run", "r2", "--to", "production")
    assert "1.1" in web.images("production")


@pytest.mark.tier("all")
def test_rollback_of_a_manual_change_restores_the_promoted_version(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.write("staging/kustomization.yaml", web.images("staging").replace("1.1", "6.6") + "\n")
    web.commit("hot")
    web.argosy("rollback", "staging", "--reason", "too hot")
    assert "1.1" in web.images("staging") and "6.6" not in web.images("staging")


@pytest.mark.tier("all")
def test_locked_git_index_is_reported_and_nothing_is_promoted(web: Shelf) -> None:
    (web.folder / ".git/index.lock").touch()
    refused = web.argosy("run", "--to", "staging", code=2)
    assert "index.lock exists" in refused.err and "1.1" not in web.images("staging")


@pytest.mark.tier("all")
def test_hold_blocks_older_releases_and_rollback(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.argosy("hold", "staging", "--reason", "quarter end")
    for words in (("run", "r1", "--to", "staging"), ("rollback", "staging")):
        refused = web.argosy(*words, code=1)
        assert "hold: held by ann@example.com: quarter end" in refused.err
        assert "next: argosy promote resume staging" in refused.err


def test_two_approval_gates_need_two_people(web: Shelf) -> None:
    roles = "    leads: {groups: [ann@example.com], may: [get]}\n    safety: {groups: [bob@example.com], may: [get]}\n"
    text = DELIVERY.replace("      - approval: leads\n", "      - approval: leads\n      - approval: safety\n")
    web.write("argosy.yaml", text.partition("    leads: {")[0] + roles)
    web.commit("two")
    web.argosy("run", "--to", "staging")
    web.argosy("approve", "--to", "production")
    web.argosy("run", "--to", "production", code=1)
    web.git("config", "user.email", "bob@example.com")
    web.argosy("approve", "--to", "production")
    web.argosy("run", "--to", "production")
    assert "1.1" in web.images("production")


@pytest.mark.tier("all")
def test_plan_names_git_as_the_source_of_an_approval(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.argosy("approve", "--to", "production")
    assert "s ago (as Git was told)" in web.argosy("plan", "--to", "production").out


def test_secret_parameters_are_shown_by_name_without_values(web: Shelf) -> None:
    def keyed(environment: str, value: str) -> None:
        text = web.images(environment).partition("patches:")[0].rstrip("\n")
        variable = f"{{name: API_TOKEN, value: {value}}}"
        arguments = f'["--key", "a", "--db-password={value}"]'
        web.write(
            f"{environment}/kustomization.yaml",
            f"{text}\npatches:\n  - target: {{kind: Deployment, name: web}}\n    patch: |-\n"
            f"      - {{op: add, path: /spec/template/spec/containers/0/env, value: [{variable}]}}\n"
            f"      - {{op: add, path: /spec/template/spec/containers/0/args, value: {arguments}}}\n",
        )
        web.commit("a key")

    for environment in ("dev", "staging"):
        keyed(environment, "hunter2")
    web.pin("dev", "1.1")
    keyed("dev", "hunter2")
    web.argosy("run", "--to", "staging")
    keyed("dev", "hunter3")
    results = [web.argosy("plan", "--to", "staging", *form) for form in ((), ("-o", "json"))]
    results.append(web.argosy("run", "--to", "staging"))
    output = "".join(result.out + result.err for result in results) + web.git("log", "-1", "--format=%B")
    assert "API_TOKEN" in output and "--db-password=++++++++" in output and "hunter" not in output
    assert web.images("staging").count("hunter3") == 2


@pytest.mark.tier("all")
def test_unreadable_application_file_does_not_remove_an_environment(web: Shelf) -> None:
    web.git("rm", "-q", "argosy.yaml")
    for name in ("dev", "staging", "production"):
        source = {"repoURL": "https://example.com/web.git", "path": name, "targetRevision": "main"}
        spec = {"source": source, "destination": {"namespace": name}, "project": "default"}
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": f"web-{name}"}}
        web.write(f"apps/{name}.yaml", yaml.safe_dump({**app, "spec": spec}))
    web.commit("no file")
    web.argosy("plan", "--to", "production")
    web.write("apps/staging.yaml", (web.folder / "apps/staging.yaml").read_text() + "spec: [\n")
    web.commit("broken")
    refused = web.argosy("plan", "--to", "production", code=2)
    assert "apps/staging.yaml" in refused.err
    web.git("rm", "-q", "apps/staging.yaml")
    web.commit("gone")
    refused = web.argosy("plan", "--to", "production", code=2)
    assert "no Application deploys the folder staging next to dev" in refused.err


def test_unpulled_upstream_hold_keeps_the_gate_closed(web: Shelf, tmp_path: Path) -> None:
    web.git("clone", "-q", str(web.folder), str(tmp_path / "mine"))
    own_clone = Shelf(tmp_path / "mine")
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com")):
        own_clone.git("config", name, value)
    web.argosy("hold", "staging", "--reason", "quarter end")
    own_clone.git("fetch", "-q")
    assert "newer entry for staging that is not pulled" in own_clone.argosy("plan", "--to", "staging", code=1).out
    assert "next: git pull" in own_clone.argosy("run", "--to", "staging", code=1).err
    own_clone.git("pull", "-q")
    assert "held by" in own_clone.argosy("run", "--to", "staging", code=1).err
