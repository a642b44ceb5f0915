"""`argosy promote` in a clone without a cluster: moves, approvals, rollbacks, and recovery from a kill."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest
import yaml

from argosy.cli.tables import TerminalOutput
from argosy.gitops.workspace import git_repository as plumbing
from support.promotion_repository import BASE, DELIVERY, Shelf, begin, chdir, copy_of, typed
from support.tiers import IN_TEST_ALL


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("begun") / "web")


@pytest.fixture
def web(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return copy_of(begun, tmp_path, monkeypatch)


IMAGE_SETTER = """\
apiVersion: builtin
kind: ImageTagTransformer
metadata: {name: always}
imageTag: {name: example.com/web, newTag: "1.0"}
"""

# -- status and plan --


def test_status_shows_each_environment_and_the_next_promotion(web: Shelf) -> None:
    lines = web.argosy("status").out.splitlines()
    assert lines[0].split() == ["dev", lines[0].split()[1], "staging", lines[0].split()[3], "production"]
    assert lines[0].split()[1].endswith("▶")
    release = next(line for line in lines if line.startswith("release"))
    assert "r2" in release and release.count("r1") == 2
    assert next(line for line in lines if line.startswith("next")).split("  ")[-1] == "has all of staging"
    assert any("promote r2 → staging (ready)" in line for line in lines)


def test_plan_shows_moves_kept_fields_and_the_next_command(web: Shelf) -> None:
    result = web.argosy("plan", "--to", "staging")
    assert "image  Deployment/staging-web  web:1.0 → web:1.1" in result.out
    assert "in staging/kustomization.yaml" in result.out
    assert "replicas 2" in result.out and "prefix staging-" in result.out
    assert "afterwards: production requires approval by leads (ann@example.com)" in result.out
    assert result.err.strip() == "next: argosy promote run --to staging"


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        pytest.param(["plan", "--to", "staging"], marks=IN_TEST_ALL),
        pytest.param(["history"], marks=IN_TEST_ALL),
    ],
)
def test_output_wraps_at_80_columns_without_losing_words(
    web: Shelf, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    reason = "the numbers of the last quarter are being counted, and nobody wants a surprise while that goes on"
    web.argosy("hold", "production", "--reason", reason)
    whole = web.argosy(*words).out

    class Narrow(TerminalOutput):
        def __init__(self, stream: TextIO) -> None:
            super().__init__(stream)
            self.width = 80

    monkeypatch.setattr("argosy.features.promote.read_cli.TerminalOutput", Narrow)
    output = web.argosy(*words).out
    assert max(map(len, output.splitlines())) <= 80 and "…" not in output
    assert {word for word in whole.split() if "─" not in word} - {"MESSAGE"} <= set(output.split())


def test_plan_has_json_output_and_status_has_yaml_output(web: Shelf) -> None:
    plan = json.loads(web.argosy("plan", "--to", "staging", "-o", "json").out)
    assert plan["kind"] == "PromotionPlan" and plan["ready"] is True
    assert plan["moves"][0]["to"] == "example.com/web:1.1"
    status = yaml.safe_load(web.argosy("status", "-o", "yaml").out)
    assert [environment["name"] for environment in status["environments"]] == ["dev", "staging", "production"]
    assert status["environments"][1]["next"]["release"]["name"] == "r2"


@pytest.mark.tier("all")
def test_environments_are_found_by_convention_without_argosy_yaml(web: Shelf) -> None:
    web.git("rm", "-q", "argosy.yaml")
    for name in ("dev", "staging", "production"):
        source = {"repoURL": "https://example.com/web.git", "path": name, "targetRevision": "main"}
        spec = {"source": source, "destination": {"namespace": name}, "project": "default"}
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": f"web-{name}"}}
        web.write(f"apps/{name}.yaml", yaml.safe_dump({**app, "spec": spec}))
    web.commit("no file")
    result = web.argosy("plan", "--to", "staging", code=1)
    assert "web:1.0 → web:1.1" in result.out and "✖ healthy" in result.out


def test_gate_that_needs_a_cluster_is_closed_without_one(web: Shelf) -> None:
    web.write("argosy.yaml", DELIVERY.replace("after: dev}", "after: dev, gates: [{healthy: 10m}]}"))
    web.commit("a gate")
    result = web.argosy("plan", "--to", "staging", code=1)
    assert "✖ healthy 10m  unknown: the cluster was not contacted" in result.out
    refused = web.argosy("run", "--to", "staging", code=1)
    assert "r2 is not promoted to staging" in refused.err and web.git("log", "--oneline").count("\n") == 2


@pytest.mark.tier("all")
def test_check_gate_is_closed_by_a_rule_violation(web: Shelf) -> None:
    web.write("argosy.yaml", DELIVERY.replace("after: dev}", "after: dev, gates: [{check: true}]}"))
    web.commit("a gate")
    assert "✔ check  no errors, no warnings" in web.argosy("plan", "--to", "staging").out
    broken = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\nspec: {replicas: many}\n"
    web.write("base/broken.yaml", broken)
    web.write("base/kustomization.yaml", "resources: [web.yaml, broken.yaml]\n")
    web.commit("broken")
    result = web.argosy("plan", "--to", "staging", code=1)
    assert "✖ check" in result.out and "AGY" in result.out and result.err.endswith("next: argosy check\n")


@pytest.mark.tier("all")
def test_move_that_cannot_be_written_blocks_the_run_and_shows_the_values(web: Shelf) -> None:
    text = (web.folder / "staging/kustomization.yaml").read_text()
    web.write("staging/setter.yaml", IMAGE_SETTER)
    web.write("staging/kustomization.yaml", f"{text}transformers: [setter.yaml]\n")
    before = web.commit("staging's image is set by a transformer, after all else")
    result = web.argosy("plan", "--to", "staging", code=1)
    assert "web:1.0 → web:1.1" in result.out and "✖ files" in result.out and "edit them by hand" in result.out
    web.argosy("run", "--to", "staging", code=1)
    assert web.git("rev-parse", "HEAD") == before


def test_plain_manifests_can_be_promoted(web: Shelf) -> None:
    web.git("rm", "-q", "staging/kustomization.yaml")
    web.write("staging/web.yaml", "# plain\n" + BASE.replace("name: web}", "name: staging-web}", 1))
    web.commit("staging is plain files")
    web.argosy("run", "--to", "staging")
    assert 'image: "example.com/web:1.1"' in web.git("show", "HEAD:staging/web.yaml")
    assert web.git("show", "HEAD:staging/web.yaml").startswith("# plain\n")


@pytest.mark.tier("all")
def test_two_objects_with_the_same_field_get_their_own_versions(web: Shelf) -> None:
    api = BASE.replace("name: web}", "name: api}", 1).replace("example.com/web", "example.com/api")
    web.write("base/api.yaml", api)
    web.write("base/kustomization.yaml", "resources: [web.yaml, api.yaml]\n")
    text = (web.folder / "dev/kustomization.yaml").read_text()
    web.write("dev/kustomization.yaml", f'{text}  - {{name: example.com/api, newTag: "7"}}\n')
    web.commit("dev: an api, too")
    web.argosy("run", "--to", "staging")
    assert 'newTag: "1.1"' in web.images("staging") and 'newTag: "7"' in web.images("staging")


# -- run, approve, hold, rollback --


def test_run_makes_one_commit_with_release_and_actor_in_its_message(web: Shelf) -> None:
    before = web.git("rev-parse", "HEAD")
    web.argosy("run", "--to", "staging")
    assert web.git("rev-parse", "HEAD~1") == before and web.git("status", "--porcelain") == ""
    assert web.git("show", "--format=", "--name-only", "HEAD") == "staging/kustomization.yaml"
    text = web.git("log", "-1", "--format=%B")
    assert text.startswith("Promote r2 to staging\n") and "web:1.0 → example.com/web:1.1" in text
    assert f"Argosy-Release: r2 {before}" in text and "Argosy-By: ann@example.com (git)" in text
    assert web.images("staging").startswith("# staging: what only this environment has")
    again = web.argosy("run", "--to", "staging")
    assert "moves: nothing" in again.out and web.git("rev-parse", "HEAD~1") == before


def test_run_on_a_branch_is_repeatable_and_keeps_the_current_branch(web: Shelf) -> None:
    before = web.git("rev-parse", "HEAD")
    result = web.argosy("run", "--to", "staging", "--branch", "promote-r2")
    assert "git push -u origin promote-r2" in result.err
    assert web.git("rev-parse", "main") == before == web.git("rev-parse", "promote-r2~1")
    assert "1.1" in web.images("staging", "promote-r2") and "1.1" not in web.images("staging")
    assert "was committed before" in web.argosy("run", "--to", "staging", "--branch", "promote-r2").err
    web.pin("dev", "1.2")
    refused = web.argosy("run", "--to", "staging", "--branch", "promote-r2", code=2)
    assert "branch promote-r2 already exists" in refused.err


def test_skipping_an_environment_without_a_reason_is_refused(web: Shelf) -> None:
    refused = web.argosy("run", "r2", "--to", "production", code=2)
    assert "r2 has not been in staging, which is before production" in refused.err
    assert "argosy promote run r2 --to staging, or skip it: --skip staging --reason TEXT" in refused.err
    refused = web.argosy("run", "--to", "production", "--skip", "staging", code=2)
    assert "skipping staging requires a reason" in refused.err
    web.argosy("approve", "r2", "--to", "production", code=2)
    assert web.git("rev-list", "--count", "HEAD") == "2"


@pytest.mark.tier("all")
def test_skip_with_a_reason_is_recorded_in_commit_and_history(web: Shelf) -> None:
    web.write("argosy.yaml", DELIVERY.replace("gates:\n      - approval: leads", "gates: []"))
    web.commit("no gate")
    web.argosy("run", "--to", "production", "--skip", "staging", "--reason", "fire")
    assert "1.1" in web.images("production") and "1.1" not in web.images("staging")
    history = web.argosy("history", "production").out
    assert "skipped staging" in history and "fire" in history
    assert "Argosy-Skipped: staging" in web.git("log", "-1", "--format=%B")


@pytest.mark.tier("all")
def test_each_release_needs_approval_by_a_member_of_the_role(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    refused = web.argosy("run", "--to", "production", code=1)
    assert "approval (leads): not approved yet" in refused.err
    assert "argosy promote approve --to production" in refused.err
    web.git("config", "user.email", "eve@example.com")
    stranger = web.argosy("approve", "--to", "production", code=2)
    assert "eve@example.com does not have the role leads (members: ann@example.com)" in stranger.err
    web.git("config", "user.email", "ann@example.com")
    web.argosy("approve", "--to", "production")
    assert web.git("show", "--format=", "--name-only", "HEAD") == ""
    assert "(unchanged)" in web.argosy("approve", "--to", "production").out
    web.argosy("run", "--to", "production")
    assert "1.1" in web.images("production")
    web.pin("dev", "1.2")
    web.argosy("run", "--to", "staging")
    web.argosy("run", "--to", "production", code=1)


@pytest.mark.tier("all")
def test_rejection_closes_the_gate_until_an_approval(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.argosy("approve", "--to", "production")
    web.argosy("reject", "--to", "production", "--reason", "slow")
    assert "rejected by ann@example.com: slow" in web.argosy("run", "--to", "production", code=1).err
    web.argosy("approve", "--to", "production")
    web.argosy("run", "--to", "production")


@pytest.mark.tier("all")
def test_hold_blocks_promotion_until_resume(web: Shelf) -> None:
    web.argosy("hold", "staging", "--reason", "quarter end")
    assert "held by ann@example.com: quarter end" in web.argosy("run", "--to", "staging", code=1).err
    assert "(unchanged)" in web.argosy("hold", "staging").out
    web.argosy("resume", "staging")
    web.argosy("run", "--to", "staging")
    words = [line.split()[3] for line in web.argosy("history").out.splitlines()[1:]]
    assert words == ["promote", "resume", "hold"]


def test_rollback_restores_the_release_before_and_blocks_the_one_rolled_back(web: Shelf) -> None:
    before = web.images("staging")
    web.argosy("run", "--to", "staging")
    result = web.argosy("rollback", "staging", "--reason", "wrong answers")
    assert "roll back r1" in result.out and "web:1.1 → web:1.0" in result.out
    assert "stays as it is in staging: all else" in result.out
    assert 'newTag: "1.0"' in web.images("staging") or web.images("staging") == before
    refused = web.argosy("run", "--to", "staging", code=1)
    assert "rolled back: from r2, by ann@example.com: wrong answers" in refused.err
    web.pin("dev", "1.2")
    web.argosy("run", "--to", "staging")
    assert "1.2" in web.images("staging")
    refused = web.argosy("run", "r2", "--to", "staging", code=1)
    assert "rolled back: from r2" in refused.err
    web.argosy("resume", "staging")
    web.argosy("run", "--release", "r2", "--to", "staging")
    assert "1.1" in web.images("staging")


@pytest.mark.tier("all")
def test_rollback_without_a_promotion_suggests_git_revert(web: Shelf) -> None:
    refused = web.argosy("rollback", "staging", code=2)
    assert "r1 was not promoted to staging" in refused.err and "git revert" in refused.err


@pytest.mark.tier("all")
def test_parameters_move_only_if_changed_since_the_last_promotion(web: Shelf) -> None:
    def argue(environment: str, value: str) -> None:
        text = (web.folder / environment / "kustomization.yaml").read_text().partition("patches:")[0]
        operation = f'- {{op: add, path: /spec/template/spec/containers/0/args, value: ["{value}"]}}'
        patch = f"patches:\n  - target: {{kind: Deployment, name: web}}\n    patch: |-\n      {operation}\n"
        web.write(f"{environment}/kustomization.yaml", text + patch)
        web.commit(f"{environment}: {value}")

    argue("staging", "-quiet")
    argue("dev", "-loud")
    assert "args" not in web.argosy("plan", "--to", "staging").out.partition("stays")[0]
    web.argosy("run", "--to", "staging")
    assert "-quiet" in web.images("staging")
    argue("staging", "-loud")
    web.argosy("run", "--to", "staging")
    argue("dev", "-louder")
    assert "parameter" in web.argosy("plan", "--to", "staging").out
    web.argosy("run", "--to", "staging")
    assert "-louder" in web.images("staging")


# -- unusual repositories --


def test_uncommitted_changes_are_neither_promoted_nor_overwritten(web: Shelf) -> None:
    path = web.folder / "staging/kustomization.yaml"
    path.write_text(path.read_text() + "# mine\n")
    web.write("notes.txt", "mine")
    assert "ignored, because not committed: staging/kustomization.yaml" in web.argosy("plan", "--to", "staging").err
    refused = web.argosy("run", "--to", "staging", code=2)
    assert "staging/kustomization.yaml: uncommitted changes" in refused.err
    web.argosy("run", "--to", "staging", "--branch", "aside")
    assert path.read_text().endswith("# mine\n") and "# mine" not in web.images("staging", "aside")


@pytest.mark.tier("all")
def test_run_keeps_other_changes_in_work_tree_and_index(web: Shelf) -> None:
    web.write("notes.txt", "staged")
    web.git("add", "notes.txt")
    web.write("base/web.yaml", (web.folder / "base/web.yaml").read_text() + "# mine\n")
    web.argosy("run", "--to", "staging")
    assert web.git("status", "--porcelain").splitlines() == ["M base/web.yaml", "A  notes.txt"]
    assert web.git("show", "--format=", "--name-only", "HEAD") == "staging/kustomization.yaml"


@pytest.mark.tier("all")
def test_run_on_a_detached_head_needs_the_branch_flag(web: Shelf) -> None:
    web.git("checkout", "-q", "--detach")
    refused = web.argosy("run", "--to", "staging", code=2)
    assert "HEAD is detached" in refused.err and "--branch NAME" in refused.err
    web.argosy("run", "--to", "staging", "--branch", "aside")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("after: dev", "after: production", "it comes after itself", marks=IN_TEST_ALL),
        ("after: dev", "after: dve", "did you mean dev?"),
        pytest.param("kind: Delivery", "kind: [", "argosy.yaml", marks=IN_TEST_ALL),
    ],
)
def test_invalid_argosy_yaml_is_refused_without_a_commit(web: Shelf, old: str, new: str, message: str) -> None:
    web.write("argosy.yaml", DELIVERY.replace(old, new))
    before = web.commit("bad")
    for words in (("status",), ("plan", "--to", "staging"), ("run", "--to", "staging")):
        assert message in web.argosy(*words, code=2).err
    assert web.git("rev-parse", "HEAD") == before


@pytest.mark.tier("all")
def test_environment_that_cannot_be_built_is_reported_and_others_work(web: Shelf) -> None:
    web.write("argosy.yaml", DELIVERY.replace("path: production", "path: prodution"))
    web.commit("bad")
    result = web.argosy("status", code=1)
    assert "✖ cannot be built" in result.out and "promote r2 → staging (ready)" in result.out
    assert "problem: production cannot be built" in result.err and "its path in argosy.yaml" in result.err
    documents = json.loads(web.argosy("status", "-o", "json", code=1).out)["environments"]
    assert "cannot be built" in documents[2]["problem"] and documents[1]["next"]["ready"]
    assert "production cannot be built" in web.argosy("plan", "--to", "production", code=2).err
    web.argosy("run", "--to", "staging")


def test_folder_without_git_repository_is_refused_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "empty").mkdir()
    with chdir(tmp_path / "empty"):
        result = typed("promote", "status", "--offline", code=2)
    assert "the current folder is not in a Git repository" in result.err and "argosy demo" in result.err


@pytest.mark.tier("all")
def test_run_works_in_a_bare_repository(web: Shelf, tmp_path: Path) -> None:
    web.git("clone", "-q", "--bare", str(web.folder), str(tmp_path / "web.git"))
    bare = Shelf(tmp_path / "web.git")
    bare.argosy("run", "--to", "staging")
    assert "1.1" in bare.images("staging")


# -- kills and concurrency --


class Killed(BaseException):
    """Like kill -9: no code of ours handles it."""


def steps_of(web: Shelf, monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool) -> int:
    """Run a promotion that dies before or after git call number `at`; return how many calls it made."""
    call_count, run = [0], plumbing.subprocess.run

    def counted(*words: Any, **options: Any) -> Any:
        call_count[0] += 1
        if call_count[0] == at and not after:
            raise Killed
        done = run(*words, **options)
        if call_count[0] == at and after:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(plumbing.subprocess, "run", counted)
        try:
            web.argosy("run", "--to", "staging", code=None)
        except Killed:
            pass
    return call_count[0]


def is_whole(web: Shelf, before: str) -> None:
    """Assert that Git has all of the promotion or nothing, and that a second run completes it."""
    head = web.git("rev-parse", "HEAD")
    assert head == before or web.git("rev-parse", "HEAD~1") == before
    assert ("1.1" in web.images("staging")) is (head != before)
    web.argosy("run", "--to", "staging")
    assert web.git("status", "--porcelain") == "" and "1.1" in web.images("staging")
    assert web.git("rev-parse", "HEAD~1") == before and web.git("fsck", "--strict", "--no-dangling") == ""


@pytest.mark.tier("all")
def test_promotion_killed_near_its_end_is_atomic(
    web: Shelf, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = web.git("rev-parse", "HEAD")
    count = steps_of(web, monkeypatch, 0, after=False)
    for number, (back, after) in enumerate(((4, True), (3, True), (2, True), (1, False), (1, True))):
        shutil.copytree(begun, tmp_path / f"web{number}")
        again = Shelf(tmp_path / f"web{number}")
        steps_of(again, monkeypatch, count - back, after=after)
        is_whole(again, before)


@pytest.mark.tier("all")
def test_promotion_killed_at_any_git_call_is_atomic(
    web: Shelf, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = web.git("rev-parse", "HEAD")
    count = steps_of(web, monkeypatch, 0, after=False)
    for at in range(1, count + 1):
        for after in (False, True):
            shutil.copytree(begun, tmp_path / f"web{at}{after}")
            again = Shelf(tmp_path / f"web{at}{after}")
            steps_of(again, monkeypatch, at, after=after)
            is_whole(again, before)


@pytest.mark.tier("all")
def test_concurrent_promotions_commit_only_once(web: Shelf) -> None:
    from argosy.cli.application_service_connection import build_service_opener
    from argosy.cli.cluster_target import TargetOptions
    from argosy.features.promote.commits import commit_promotion
    from argosy.features.promote.plan import PromotionRequest
    from argosy.features.promote.service import open_session

    before, moved = web.git("rev-parse", "HEAD"), []
    start = threading.Barrier(2)

    def run() -> None:
        opened = open_session(
            web.folder, build_service_opener(TargetOptions()), lambda: None, is_offline=True, log=lambda _: None
        )
        with opened as session:
            assert session.snapshot.head
            start.wait()
            with session.snapshot.repository.lock_promotions():
                session.reload_if_moved()
                plan = session.plan(PromotionRequest("staging"))
                moved.append(len(plan.changes.moves))
                if plan.changes.moves:
                    commit_promotion(session.snapshot, plan, session.actor)

    both = [threading.Thread(target=run) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(moved) == [0, 1] and web.git("rev-parse", "HEAD~1") == before


def while_it_waits(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Run `act` while the next command waits for the promotion lock."""
    alone = plumbing.GitRepository.lock_promotions

    def later(self: plumbing.GitRepository) -> Any:
        monkeypatch.setattr(plumbing.GitRepository, "lock_promotions", alone)
        act()
        return alone(self)

    monkeypatch.setattr(plumbing.GitRepository, "lock_promotions", later)


@pytest.mark.tier("all")
def test_rollback_is_refused_if_the_release_changed_meanwhile(web: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    web.argosy("run", "--to", "staging")
    web.pin("dev", "1.2")
    while_it_waits(monkeypatch, lambda: web.argosy("run", "--to", "staging"))
    refused = web.argosy("rollback", "staging", code=1)
    assert (
        "staging has r4 now: another change came first" in refused.err and "next: argosy promote status" in refused.err
    )
    assert "1.2" in web.images("staging"), "nobody has said that it is wrong"
    while_it_waits(monkeypatch, lambda: web.argosy("rollback", "staging"))
    assert "nothing to do: staging has all of r2" in web.argosy("rollback", "staging").err
    assert "1.1" in web.images("staging"), "two who take the same back go back once"


def test_concurrent_commit_of_another_user_is_not_lost(web: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = plumbing.GitRepository.create_commit

    def slow(self: plumbing.GitRepository, *words: Any) -> str:
        staged = stage(self, *words)
        web.write("notes.txt", "quick")
        web.commit("somebody was quicker")
        return staged

    monkeypatch.setattr(plumbing.GitRepository, "create_commit", slow)
    refused = web.argosy("run", "--to", "staging", code=2)
    assert "main was changed by somebody else meanwhile" in refused.err
    assert web.git("log", "-1", "--format=%s") == "somebody was quicker" and web.git("status", "--porcelain") == ""
