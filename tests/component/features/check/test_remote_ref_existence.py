"""`check --online`: existence of branches and tags on the Git host; without the option no host is queried."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_OK
from argosy.errors import SourceUnreachable
from argosy.features.check.service import RemoteRefs
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache
from argosy.main import main

KNOWN = Refs({"HEAD": "1" * 40, "refs/heads/main": "1" * 40, "refs/tags/v1.2.0": "2" * 40})
URL = "https://git.example.com/acme/fraud.git"


@pytest.mark.parametrize("ref", ["", "HEAD", "main", "v1.2.0", "1.x", "0123456", "1" * 40, "refs/heads/main"])
def test_existing_ref_or_commit_id_gives_no_error(ref: str) -> None:
    assert RemoteRefs(lambda url: KNOWN).find_missing_ref_error(URL, ref) == ""


def test_misspelled_ref_error_suggests_the_right_one() -> None:
    assert RemoteRefs(lambda url: KNOWN).find_missing_ref_error(URL, "mian") == (
        "there is no branch, tag or commit 'mian'; did you mean main?"
    )


def test_refs_are_not_checked_without_a_fetch_function() -> None:
    assert RemoteRefs(None).find_missing_ref_error(URL, "mian") == ""


def test_unreachable_host_is_queried_once_and_gives_one_note() -> None:
    requested_urls: list[str] = []

    def silent(url: str) -> Refs:
        requested_urls.append(url)
        raise SourceUnreachable("the host gives no answer; try again later", where=url)

    hosts = RemoteRefs(silent)
    assert [hosts.find_missing_ref_error(URL, "mian"), hosts.find_missing_ref_error(URL, "other")] == ["", ""]
    assert len(requested_urls) == len(hosts.notes) == 1


def test_fetch_refs_returns_branches_and_tags(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one")
    git("tag", "v1")
    checkouts = CheckoutCache([tmp_path], show_progress=lambda text: None)
    try:
        refs = checkouts.fetch_refs(f"file://{tmp_path}")
    finally:
        checkouts.close()
    assert (refs.branches, refs.tags) == (["main"], ["v1"])


def test_check_online_with_unreachable_host_prints_note_and_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "c.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (tmp_path / "app.yaml").write_text(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\nspec:\n"
        "  project: default\n  source: {repoURL: https://127.0.0.1:1/a.git, path: manifests, targetRevision: mian}\n"
        "  destination: {server: https://kubernetes.default.svc, namespace: default}\n"
    )
    assert main(["check", "--online"]) == EXIT_OK
    captured = capsys.readouterr()
    assert (captured.out, "branches and tags were not checked" in captured.err) == ("", True)
