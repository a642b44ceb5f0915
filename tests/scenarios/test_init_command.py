"""`argosy init DIR` from the command line, with a real Git and a home folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.kube.schema.bundled_crds import load_definitions
from support.clusters import ARGOSY, KUBECTL, Sandbox, until_served
from support.deadlines import HANG_SECONDS
from support.forked_commands import Done, run

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/acme/fraud.git"


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", **more}


def typed(home: Path, *words: str, **more: str) -> Done:
    return run(["init", *words], env=environment(home, **more), cwd=home, timeout=HANG_SECONDS)


def git(home: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=home, env=environment(home), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_init_creates_a_committed_repository_and_prints_next_commands(home: Path) -> None:
    done = typed(home, "models", "--name", "fraud", "--repo-url", ADDRESS)
    assert (done.returncode, done.stderr) == (0, "")
    repository = home / "models"
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "branch", "--show-current") == "main"
    assert git(repository, "rev-list", "--count", "HEAD") == "1"
    assert git(repository, "remote", "get-url", "origin") == ADDRESS
    assert done.stdout.splitlines()[-3:] == [
        "  cd models",
        "  git push -u origin main",
        "  argosy setup plan -f argosy.yaml",
    ]
    assert sorted(path.name for path in home.iterdir()) == ["models"]


@pytest.mark.tier("all")
def test_init_without_repo_url_points_out_the_placeholder(home: Path) -> None:
    last = typed(home, "models").stdout.splitlines()[-1]
    command = last.partition("#")[0].split()
    assert command[:3] == ["git", "grep", "-l"]
    assert "argocd-apps/dev-application.yaml" in git(home / "models", *command[1:]).splitlines()
    assert git(home / "models", "remote") == ""


@pytest.mark.tier("all")
def test_commit_uses_the_git_identity_or_else_a_neutral_one(home: Path) -> None:
    typed(home, "nobody")
    assert git(home / "nobody", "log", "--format=%an <%ae>") == "argosy <argosy@localhost>"
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
    typed(home, "hers")
    assert git(home / "hers", "log", "--format=%an <%ae> %cn") == "Ada <ada@example.com> Ada"


@pytest.mark.tier("all")
def test_no_commit_leaves_the_first_commit_to_the_user(home: Path) -> None:
    done = typed(home, "models", "--no-commit")
    assert "not committed" in done.stdout
    assert "?? argosy.yaml" in git(home / "models", "status", "--porcelain").splitlines()


def test_init_fills_the_empty_current_folder_in_place(home: Path) -> None:
    here = home / "here"
    here.mkdir()
    before = here.stat().st_ino
    done = subprocess.run([ARGOSY, "init", "."], cwd=here, env=environment(home), check=False, capture_output=True)
    assert done.returncode == 0
    assert here.stat().st_ino == before
    assert git(here, "status", "--porcelain") == ""
    assert not [path for path in here.iterdir() if path.name.startswith(".argosy")]


@pytest.mark.parametrize(
    ("left", "said"), [("notes.txt", "is not empty"), (".git/HEAD", "a Git repository exists already")]
)
def test_init_refuses_a_folder_with_content_and_keeps_it(home: Path, left: str, said: str) -> None:
    file = home / "models" / left
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    done = typed(home, "models")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "next: choose another" in done.stderr
    assert [path for path in (home / "models").rglob("*") if path.is_file()] == [file]


@pytest.mark.tier("all")
def test_init_refuses_a_path_that_is_a_file_or_link(home: Path) -> None:
    (home / "file").write_text("mine")
    (home / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        done = typed(home, name)
        assert done.returncode == 2
        assert f"{name}: is a file" in done.stderr
    assert (home / "link").is_symlink()


@pytest.mark.tier("all")
def test_init_creates_parent_folders(home: Path) -> None:
    assert typed(home, "teams/ours/models").returncode == 0
    assert git(home / "teams/ours/models", "status", "--porcelain") == ""


def test_init_without_git_exits_3_with_a_next_step(home: Path) -> None:
    empty = home / "bin"
    empty.mkdir()
    done = typed(home, "models", PATH=str(empty))
    assert done.returncode == 3
    assert "git was not found" in done.stderr
    assert "next: install it" in done.stderr
    assert not (home / "models").exists()


def test_failed_commit_leaves_nothing_behind(home: Path) -> None:
    hooks = home / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\necho 'no; not today' >&2\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    (home / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n")
    done = typed(home, "teams/ours/models")
    assert done.returncode == 2
    assert "git commit: no, not today" in done.stderr
    assert "--no-commit" in done.stderr
    assert sorted(path.name for path in home.iterdir()) == [".gitconfig", "hooks"]


def test_init_ignores_git_dir_and_git_work_tree(home: Path) -> None:
    typed(home, "other")
    first = git(home / "other", "rev-parse", "HEAD")
    done = typed(home, "models", GIT_DIR=str(home / "other/.git"), GIT_WORK_TREE=str(home / "other"))
    assert done.returncode == 0
    assert git(home / "other", "rev-parse", "HEAD") == first
    assert git(home / "models", "rev-list", "--count", "HEAD") == "1"


@pytest.mark.parametrize("overlay", ["dev", "staging", "production"])
@pytest.mark.tier("all")
def test_overlays_build_the_same_as_those_of_the_example_tree(home: Path, overlay: str, needs_kubectl: None) -> None:
    typed(home, "models")
    built = [
        subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=True).stdout
        for folder in (
            home / "models/deploy_model/overlays" / overlay,
            ROOT / "llmops-via-argocd/deploy_model/overlays" / overlay,
        )
    ]
    assert built[0] == built[1] != ""


def test_checks_of_a_new_repository_pass(home: Path, needs_kubectl: None) -> None:
    typed(home, "models", "--name", "fraud", "--repo-url", ADDRESS)
    path = f"{KUBECTL.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["./pipelines/scripts/check-all.sh"],
        cwd=home / "models",
        env=environment(home, PATH=path, PYTHON=sys.executable),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.tier("all")
def test_cluster_accepts_applications_overlays_and_notebooks(home: Path, running: Sandbox, needs_kubectl: None) -> None:
    typed(home, "models", "--name", "fraud", "--repo-url", ADDRESS)
    kubectl = [str(KUBECTL), "--kubeconfig", str(running.kubeconfig)]
    kinds = load_definitions(
        "applications.argoproj.io",
        "inferenceservices.serving.kserve.io",
        "servingruntimes.serving.kserve.io",
        "notebookvalidationjobs.mlops.mlops.dev",
    )
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in ("openshift-gitops", "fraud-dev", "fraud-staging", "fraud-prod")
    ]
    first = {"apiVersion": "v1", "kind": "List", "items": [*kinds, *spaces]}
    subprocess.run([*kubectl, "apply", "-f", "-"], input=json.dumps(first), text=True, check=True, capture_output=True)
    until_served(running.kubeconfig, *(kind["metadata"]["name"] for kind in kinds))
    for words in (
        ["-f", "argocd-apps"],
        ["-k", "notebooks"],
        *(["-k", f"deploy_model/overlays/{name}"] for name in ("dev", "staging", "production")),
    ):
        done = subprocess.run(
            [*kubectl, "apply", "--validate=strict", *words],
            cwd=home / "models",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), words


@pytest.mark.tier("all")
def test_init_needs_only_the_package(home: Path) -> None:
    """A copy of the package in another folder creates the same repository."""
    alone = home / "site"
    shutil.copytree(ROOT / "src/argosy", alone / "argosy", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "argosy", "init", "models"]
    where = environment(home, PYTHONPATH=str(alone))
    subprocess.run(command, cwd=home, env=where, check=True, capture_output=True, timeout=HANG_SECONDS)
    typed(home, "usual")
    assert git(home / "models", "rev-parse", "HEAD^{tree}") == git(home / "usual", "rev-parse", "HEAD^{tree}")
