"""The fingerprint of a local repository's refs detects changes without running git."""

from __future__ import annotations

from pathlib import Path

from argosy.gitops.source.git.local_ref_files_fingerprint import refs_fingerprint
from support.engine import Repository, config_map


def test_fingerprint_changes_exactly_when_refs_change(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    inner = tmp_path / "repository" / ".git"
    repository.push({"a.yaml": config_map()})
    fingerprints = [refs_fingerprint(inner)]
    for change in (
        lambda: repository.push({"a.yaml": config_map(x="2")}),
        lambda: repository._git("branch", "team/next"),
        lambda: repository._git("tag", "v1"),
        lambda: repository._git("pack-refs", "--all"),
        lambda: repository._git("branch", "--force", "team/next", "HEAD~1"),
        lambda: repository._git("branch", "-D", "team/next"),
        lambda: repository._git("reset", "--quiet", "--hard", "HEAD~1"),
        lambda: repository._git("checkout", "--quiet", "-b", "other"),
    ):
        change()
        fingerprints.append(refs_fingerprint(inner))
    assert None not in fingerprints and len(set(fingerprints)) == len(fingerprints)
    (tmp_path / "repository" / "b.yaml").write_text("not committed")
    repository._git("status")
    assert refs_fingerprint(inner) == fingerprints[-1]


def test_fingerprint_is_none_without_a_repository(tmp_path: Path) -> None:
    assert refs_fingerprint(tmp_path / "nothing") is None
