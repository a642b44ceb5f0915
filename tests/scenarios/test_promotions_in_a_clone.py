"""`argosy promote` in a clone that is shallow, behind, ahead or edited: correct reports, or a refusal."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.application_service_connection import build_service_opener
from argosy.cli.cluster_target import TargetOptions
from argosy.cli.tables import TerminalOutput
from argosy.features.promote import service as sessions
from argosy.features.promote.environment_cluster_state import EnvironmentClusterState
from argosy.features.promote.gates import NotebookRun
from argosy.features.promote.plan import PromotionRequest
from argosy.features.promote.text_output import render_status, status_to_wire
from support.promotion_repository import ALONE, Shelf, make


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Dev has 1.2, staging 1.1, production 1.0; tests do not write to it."""
    folder = tmp_path_factory.mktemp("origin")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ALONE, "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}.items():
            patch.setenv(name, value)
        shelf = make(folder / "web")
        shelf.pin("dev", "1.1")
        shelf.argosy("run", "--to", "staging")
        shelf.pin("dev", "1.2")
        yield shelf


@pytest.fixture
def clone(origin: Shelf, tmp_path: Path) -> Shelf:
    return cloned(origin, tmp_path / "clone")


def cloned(origin: Shelf, folder: Path, *more: str) -> Shelf:
    origin.git("clone", "-q", *more, f"file://{origin.folder}", str(folder))
    shelf = Shelf(folder)
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.com")):
        shelf.git("config", name, value)
    return shelf


WRITING = [
    ("run", "--to", "staging"), ("rollback", "staging"), ("approve", "--to", "production"),
    ("reject", "--to", "production"), ("hold", "staging"), ("resume", "staging"),
]  # fmt: skip


@pytest.mark.tier("all")
def test_shallow_clone_refuses_writes_until_unshallowed(origin: Shelf, tmp_path: Path) -> None:
    shelf = cloned(origin, tmp_path / "clone", "--depth", "1")
    before = shelf.git("rev-parse", "HEAD")
    for words in (("run", "--to", "production"), *WRITING[2:]):
        stderr = shelf.argosy(*words, code=1).err
        assert "this clone is shallow" in stderr and "next: git fetch --unshallow" in stderr
    assert shelf.git("rev-parse", "HEAD") == before
    assert "✖ clone" in shelf.argosy("plan", "--to", "production", code=1).out
    assert "note: this clone is shallow" in shelf.argosy("status").err
    shelf.git("fetch", "-q", "--unshallow")
    shelf.argosy("approve", "--to", "production")
    assert "Approve r2 for production" in shelf.git("log", "-1", "--format=%s")


@pytest.mark.tier("all")
def test_branch_behind_its_upstream_refuses_writes_until_pulled(clone: Shelf) -> None:
    clone.git("reset", "-q", "--hard", "HEAD~1")
    before = clone.git("rev-parse", "HEAD")
    for words in WRITING:
        stderr = clone.argosy(*words, code=1).err
        assert "this branch is 1 commit behind origin/main" in stderr and "next: git pull" in stderr
    assert clone.git("rev-parse", "HEAD") == before
    assert "note: this branch is 1 commit behind origin/main; git pull" in clone.argosy("status").err
    clone.git("pull", "-q")
    clone.argosy("run", "--to", "staging")


@pytest.mark.tier("all")
def test_detached_head_behind_origin_is_noted_and_refuses_a_run(clone: Shelf) -> None:
    clone.git("switch", "-q", "--detach", "HEAD~2")
    assert "note: HEAD is detached, and 2 commits behind origin/HEAD" in clone.argosy("status").err
    clone.argosy("run", "--to", "staging", "--branch", "aside", code=1)
    clone.git("switch", "-q", "--detach", "origin/main")
    clone.argosy("run", "--to", "staging", "--branch", "aside")


@pytest.mark.tier("all")
def test_status_notes_unpushed_commits_and_uncommitted_files(clone: Shelf) -> None:
    assert "note: not committed" not in clone.argosy("status").err
    clone.argosy("hold", "staging")
    clone.write("argosy.yaml", "kind: [")
    stderr = clone.argosy("status").err
    assert "note: 1 commit not pushed to origin/main, so not deployed; git push" in stderr
    assert "note: ignored, because not committed: argosy.yaml" in stderr


# -- the running release, as reported by a cluster --

ENVIRONMENTS = ("dev", "staging", "production")


@contextlib.contextmanager
def open_promotion_session(shelf: Shelf, revision: str, **states: str) -> Iterator[sessions.PromotionSession]:
    """Open a session whose cluster runs `revision` everywhere, Synced except for the given states."""
    reach = build_service_opener(TargetOptions())
    opened = sessions.open_session(shelf.folder, reach, lambda: None, is_offline=True, log=lambda _: None)
    with opened as session:
        session.__dict__["cluster_state"] = EnvironmentClusterState(
            "here",
            {
                environment: app(environment, revision, states.get(environment, "Synced"))
                for environment in ENVIRONMENTS
            },
        )
        yield session


def app(name: str, revision: str, sync: str) -> dict[str, Any]:
    since = datetime(2026, 5, 4, tzinfo=UTC).isoformat()
    status = {
        "health": {"status": "Healthy", "lastTransitionTime": since},
        "sync": {"status": sync, "revision": revision},
        "history": [{"revision": revision, "deployedAt": since}],
    }
    source = {"repoURL": "https://example.com/web.git", "path": name}
    return {"metadata": {"name": f"web-{name}", "annotations": {}}, "spec": {"source": source}, "status": status}


def drawn(session: sessions.PromotionSession) -> dict[str, list[str]]:
    """Return the cells of the status table by row name."""
    rows = [line.split(None, 1) for line in render_status(session, TerminalOutput(io.StringIO()))][1:]
    return {row[0]: [cell.strip() for cell in row[1].split("  ") if cell.strip()] for row in rows if len(row) > 1}


def test_status_shows_the_running_release_and_suggests_push_then_sync(clone: Shelf) -> None:
    tip = clone.git("rev-parse", "HEAD")
    with open_promotion_session(clone, tip) as session:
        assert "runs" not in drawn(session)
    clone.argosy("run", "--to", "staging")
    with open_promotion_session(clone, tip) as session:
        rows = drawn(session)
        assert rows["release"][1].startswith("r4 ") and rows["runs"][1].startswith("r2 ")
        assert rows["next"][1] == "push, then sync"
        assert session.next_command == "git push; then: argosy app sync web-staging"
        document = status_to_wire(session)["environments"][1]
        assert document["runs"]["release"]["name"] == "r2" and document["step"] == session.next_command


def attempted(name: str, deployed: str, attempt: str, phase: str, sync: str = "Synced") -> dict[str, Any]:
    """Return an Application that deployed a commit and whose sync of the next commit has this phase."""
    application = app(name, deployed, sync)
    application["status"]["sync"]["revision"] = attempt
    application["status"]["operationState"] = {"phase": phase, "syncResult": {"revision": attempt}}
    return application


@pytest.mark.parametrize("phase", ["Failed", "Error", "Running", "Terminating"])
def test_release_whose_sync_did_not_succeed_is_not_shown_as_running(clone: Shelf, phase: str) -> None:
    """All objects are applied and Synced, but a notebook failed or is still running."""
    deployed = clone.git("rev-parse", "HEAD")
    attempt = clone.pin("dev", "9.9")
    with open_promotion_session(clone, attempt) as session:
        session.cluster_state.apps["dev"] = attempted("dev", deployed, attempt, phase)
        rows = drawn(session)
        document = status_to_wire(session)["environments"][0]
        plan = session.plan(PromotionRequest("staging"))
    assert rows["release"][0].startswith("r5 ") and rows["runs"][0].startswith("r4 ")
    assert document["runs"] == {"revision": deployed, "release": {"name": "r4", "commit": deployed, "byHand": False}}
    assert plan.release.name == "r5"


def test_release_that_needed_no_sync_counts_as_running(clone: Shelf) -> None:
    """Live state already matches the newer commit: no sync starts, and the last one was for the commit before."""
    deployed = clone.git("rev-parse", "HEAD")
    file = clone.folder / "dev" / "kustomization.yaml"
    file.write_text(f"# another comment\n{file.read_text()}")
    newer = clone.commit("dev: a comment")
    with open_promotion_session(clone, newer) as session:
        session.cluster_state.apps["dev"] = attempted("dev", deployed, deployed, "Succeeded")
        session.cluster_state.apps["dev"]["status"]["sync"]["revision"] = newer
        assert "runs" not in drawn(session)
        assert session.planner.get_next_step(session.find_environment("dev")) is None


@pytest.mark.parametrize(("sync", "phase"), [("OutOfSync", "Succeeded"), ("Synced", "Failed")])
def test_notebook_gate_stays_closed_until_the_release_is_deployed(clone: Shelf, sync: str, phase: str) -> None:
    """The notebook succeeded again, but its environment still runs the previous release."""
    text = (clone.folder / "argosy.yaml").read_text()
    gates = "after: dev, gates: [{notebook: eval}, {healthy: 1m}]}"
    clone.write("argosy.yaml", text.replace("path: staging, after: dev}", f"path: staging, {gates}"))
    deployed = clone.commit("a gate")
    attempt = clone.pin("dev", "9.9")
    with open_promotion_session(clone, attempt) as session:
        application = attempted("dev", deployed, attempt, phase, sync)
        if sync == "OutOfSync":
            application["status"]["operationState"]["syncResult"]["revision"] = deployed
        session.cluster_state.apps["dev"] = application
        session.cluster_state.notebooks["dev", "eval"] = NotebookRun("Succeeded", datetime.now(UTC))
        closed = session.plan(PromotionRequest("staging")).closed_gates
    assert [(gate.kind, gate.reason) for gate in closed] == [
        (kind, "web-dev does not run this release: not pushed yet") for kind in ("notebook", "healthy")
    ]


@pytest.mark.tier("all")
def test_gate_waiting_for_an_unpushed_release_suggests_git_push(clone: Shelf) -> None:
    tip = clone.git("rev-parse", "HEAD")
    text = (clone.folder / "argosy.yaml").read_text()
    clone.write("argosy.yaml", text.replace("- approval: leads", "- healthy: 1m"))
    clone.commit("another gate")
    clone.argosy("run", "--to", "staging")
    with open_promotion_session(clone, tip) as session:
        (closed,) = session.plan(PromotionRequest("production")).closed_gates
    assert closed.reason == "web-staging does not run this release: not pushed yet"
    assert closed.next_command == "git push; then: argosy app sync web-staging"


@pytest.mark.tier("all")
def test_status_in_an_outdated_clone_shows_the_running_release(origin: Shelf, clone: Shelf) -> None:
    tip = clone.git("rev-parse", "HEAD")
    clone.git("reset", "-q", "--hard", "HEAD~2")
    with open_promotion_session(clone, tip) as session:
        rows = drawn(session)
    assert rows["release"][0].startswith("r2 ") and rows["runs"][0].startswith("r4 ")
    assert rows["release"][1].startswith("r1 ") and rows["runs"][1].startswith("r2 ")
    with open_promotion_session(clone, "f" * 40) as session:
        assert drawn(session)["runs"][0] == "fffffff, not in this clone"
        assert session.planner.get_next_step(session.find_environment("dev")).command == "git pull"  # type: ignore[union-attr]


@pytest.mark.tier("all")
def test_next_step_of_an_out_of_sync_environment_is_app_sync(clone: Shelf) -> None:
    tip = clone.git("rev-parse", "HEAD")
    with open_promotion_session(clone, tip, production="OutOfSync") as session:
        assert session.planner.get_next_step(session.find_environment("staging")) is None
        step = session.planner.get_next_step(session.find_environment("production"))
    assert step is not None and step.command == "argosy app sync web-production"


@pytest.mark.tier("all")
def test_status_shows_a_hold_without_a_pending_promotion(clone: Shelf) -> None:
    clone.git("reset", "-q", "--hard", "HEAD~1")
    clone.git("branch", "-q", "--unset-upstream")
    clone.argosy("hold", "staging", "--reason", "quarter end")
    result = clone.argosy("status")
    lines = result.out.splitlines()
    assert "✖ hold" in next(line for line in lines if line.startswith("gates"))
    assert "held" in next(line for line in lines if line.startswith("next"))


# -- suggested next commands --


@pytest.mark.tier("all")
def test_missing_to_flag_suggests_a_complete_command(clone: Shelf) -> None:
    for words in (("plan",), ("run",), ("approve", "r2")):
        refused = clone.argosy(*words, code=2).err
        assert f"next: argosy promote {words[0]} --to staging" in refused and "missing --to ENV" in refused
    assert "next: argosy promote plan --to production" in clone.argosy("plan", "production", code=2).err
    assert "did you mean production?" in clone.argosy("plan", "--to", "prod", code=2).err


@pytest.mark.tier("all")
def test_first_environment_refuses_promotion_verbs_and_names_app_commands(clone: Shelf) -> None:
    for verb, instead in (("hold", "app hold"), ("resume", "app release"), ("rollback", "app rollback")):
        refused = clone.argosy(verb, "dev", code=2).err
        assert "dev is the first environment" in refused and f"argosy {instead} web-dev" in refused


@pytest.mark.tier("all")
def test_resume_reports_whether_a_hold_ended(clone: Shelf) -> None:
    clone.argosy("hold", "staging")
    assert "staging is no longer held\n" in clone.argosy("resume", "staging").out
    assert "staging is not held (unchanged)" in clone.argosy("resume", "staging").out


@pytest.mark.tier("all")
def test_cluster_gate_in_offline_mode_suggests_running_without_offline(clone: Shelf) -> None:
    text = (clone.folder / "argosy.yaml").read_text()
    clone.write("argosy.yaml", text.replace("after: dev}", "after: dev, gates: [{healthy: 1m}]}"))
    clone.commit("a gate")
    assert "next: run it without --offline" in clone.argosy("plan", "--to", "staging", code=1).err


def test_run_suggests_push_and_sync_and_a_second_run_has_nothing_to_do(clone: Shelf) -> None:
    result = clone.argosy("run", "--to", "staging")
    assert "next: git push; then: argosy app sync web-staging" in result.err
    assert "nothing to do: staging has all of r4" in clone.argosy("run", "--to", "staging").err


def test_dry_run_flag_suggests_promote_plan(clone: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    from argosy.cli.command_parser import UsageError
    from argosy.main import main

    with pytest.raises(UsageError):
        main(["promote", "run", "--to", "staging", "--dry-run"])
    assert "did you mean argosy promote plan?" in capsys.readouterr().err


@pytest.mark.tier("all")
def test_history_of_the_first_environment_lists_promotable_releases(clone: Shelf) -> None:
    lines = clone.argosy("history", "dev").out.splitlines()
    assert lines[0].split() == ["TIME", "RELEASE", "BY", "COMMIT", "MESSAGE"]
    assert [line.split()[2] for line in lines[1:]] == ["r4", "r2", "r1"]
    clone.argosy("plan", "r2", "--to", "staging")
