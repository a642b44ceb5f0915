"""The files that Applications are written in: found, edited, and committed or left alone."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.align.application_files import Files
from argosy.features.align.commit import commit
from argosy.features.align.trial import PatchedTree, Trial, edited_file
from argosy.gitops.analysis.alignment.proposal import Proposal, ProposalKind
from argosy.gitops.application import Application, read_application
from argosy.gitops.source.settings import SourceSettings, read_settings
from support.file_trees import TextTree

ONE = "# first\nkind: Application\napiVersion: argoproj.io/v1alpha1\nmetadata: {name: one, namespace: argocd}\n"
ONE += "spec:\n  source:\n    targetRevision: old # why\n"
TWO = ONE.replace("one", "two").replace("first", "second")
BRANCH = Proposal("one", ProposalKind.BRANCH, "", "", ref="main")
LABELS = "labels:\n- pairs: {stage: two}\n  includeSelectors: true\n"
SELECTORS = Proposal("one", ProposalKind.SELECTORS, "", "", file="app/kustomization.yaml", labels=("stage",))


def application(name: str = "one", **metadata: Any) -> Application:
    wire = {"metadata": {"name": name, "namespace": "argocd", **metadata}, "spec": {"source": {"targetRevision": "x"}}}
    return read_application(wire)


def change(files: Files, *proposals: Proposal, app: Application | None = None, **bases: bytes) -> Any:
    return files.change(Trial(app or application(), bases=bases or {}), proposals)


def git(root: Path, *words: str) -> str:
    who = {f"GIT_{role}_{part}": "ann@example.com" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**own, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["git", "-C", str(root), *words], env=env, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "both.yaml").write_text(f"{ONE}---\n{TWO}")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "kustomization.yaml").write_text(LABELS)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "-m", "Begin")
    return tmp_path


def test_two_applications_of_one_file_are_both_edited_and_all_else_stays(root: Path) -> None:
    files = Files.below(str(root / "apps"))
    assert change(files, BRANCH) == (["apps/both.yaml"], [])
    assert change(files, BRANCH, app=application("two")) == (["apps/both.yaml"], [])
    assert files.new["apps/both.yaml"] == f"{ONE}---\n{TWO}".replace("old # why", "main # why")
    assert (root / "apps" / "both.yaml").read_text() == f"{ONE}---\n{TWO}", "nothing is written yet"


def test_line_endings_of_windows_and_rights_of_files_stay(root: Path) -> None:
    path = root / "apps" / "both.yaml"
    path.write_bytes(ONE.replace("\n", "\r\n").encode())
    path.chmod(0o600)
    files = Files.below(str(root))
    change(files, BRANCH)
    assert files.write() == ["apps/both.yaml"]
    assert path.read_bytes() == ONE.replace("old", "main").replace("\n", "\r\n").encode()
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_application_of_another_namespace_is_another_one(root: Path) -> None:
    paths, faults = change(Files.below(str(root)), BRANCH, app=application(namespace="elsewhere"))
    assert not paths and "one is not defined in" in faults[0] and "--repo" in faults[0]


def test_one_that_a_set_makes_is_told_by_its_maker(root: Path) -> None:
    app = application("three", ownerReferences=[{"kind": "ApplicationSet", "name": "all"}])
    _, faults = change(Files.below(str(root)), BRANCH, app=app)
    assert "made by ApplicationSet/all: change its template" in faults[0]


def test_a_patch_of_an_application_is_no_second_definition(root: Path) -> None:
    patch = "kind: Application\napiVersion: argoproj.io/v1alpha1\nmetadata: {name: one}\nspec: {project: x}\n"
    (root / "apps" / "patch.yaml").write_text(patch)
    assert change(Files.below(str(root)), BRANCH) == (["apps/both.yaml"], [])


def test_an_application_that_two_files_define_is_edited_in_neither(root: Path) -> None:
    (root / "apps" / "copy.yaml").write_text(ONE)
    files = Files.below(str(root))
    paths, faults = change(files, BRANCH)
    assert not paths and not files.changed
    (fault,) = faults
    assert "one is defined twice, in " in fault and "apps/both.yaml" in fault and "apps/copy.yaml" in fault


def test_a_file_of_the_source_is_edited_only_where_it_is_what_it_is_at_the_ref(root: Path) -> None:
    files = Files.below(str(root))
    paths, faults = change(files, SELECTORS, **{"app/kustomization.yaml": b"labels: []\n"})
    assert not paths and "differs from x; check out x" in faults[0]
    assert change(files, SELECTORS, **{"app/kustomization.yaml": LABELS.encode()}) == (["app/kustomization.yaml"], [])


@pytest.mark.parametrize("file", ["../outside.yaml", "link.yaml", "gone.yaml"])
def test_what_is_no_file_of_the_working_tree_is_not_touched(root: Path, file: str) -> None:
    (root.parent / "outside.yaml").write_text(LABELS)
    (root / "link.yaml").symlink_to(root.parent / "outside.yaml")
    proposal = Proposal("one", ProposalKind.SELECTORS, "", "", file=file, labels=("stage",))
    paths, faults = change(Files.below(str(root)), proposal, **{file: LABELS.encode()})
    assert not paths and "is no file of this working tree" in faults[0]


def test_a_template_is_left_to_people(root: Path) -> None:
    text = "kind: Deployment\nmetadata:\n  name: {{ .Values.name }}\n"
    proposal = Proposal("one", ProposalKind.RECREATE, "", "", file="x", target=("apps", "Deployment", "web"))
    with pytest.raises(UserError):
        edited_file(text, proposal)


def test_only_the_object_that_is_meant_is_annotated_and_its_options_stay() -> None:
    one = "kind: Deployment\nmetadata:\n  name: web\n  annotations:\n    argocd.argoproj.io/sync-options: Prune=false\n"
    other = "---\nkind: Deployment\nmetadata:\n  name: db\n"
    proposal = Proposal("one", ProposalKind.RECREATE, "", "", target=("apps", "Deployment", "dev-web"))
    made = edited_file(one + other, proposal)
    assert made == one.replace("Prune=false", "Prune=false,Force=true,Replace=true") + other
    assert edited_file(made, proposal) == made


def test_of_objects_with_like_names_the_one_that_is_meant_is_made_anew_and_no_other() -> None:
    text = "kind: Deployment\nmetadata:\n  name: web\n---\nkind: Deployment\nmetadata:\n  name: web-front\n"
    meant = Proposal("one", ProposalKind.RECREATE, "", "", target=("apps", "Deployment", "web-front"))
    first, _, second = edited_file(text, meant).partition("---")
    assert "Force=true" not in first and "Force=true" in second
    with pytest.raises(UserError, match="not certain; annotate it by hand"):
        edited_file(text, replace(meant, target=("apps", "Deployment", "dev-web-front")))


def test_a_commit_needs_a_new_name_and_files_without_other_changes(root: Path) -> None:
    files = Files.below(str(root))
    change(files, BRANCH)
    for name, told in (("main", "already"), ("a b", "no name for a branch"), ("-x", "no name for a branch")):
        with pytest.raises(UserError, match=told):
            commit(files, name, "Align")
    path = root / "apps" / "both.yaml"
    path.write_text(path.read_text() + "# more\n")
    with pytest.raises(UserError, match="not committed"):
        commit(files, "aligned", "Align")
    assert git(root, "branch", "--format=%(refname:short)").split() == ["main"]


def test_a_commit_is_whole_and_nothing_here_changes(root: Path) -> None:
    files = Files.below(str(root))
    change(files, BRANCH)
    made = commit(files, "team/aligned", "Align")
    assert git(root, "rev-parse", "team/aligned").strip() == made
    assert git(root, "show", "--name-only", "--format=%s", made).split() == ["Align", "apps/both.yaml"]
    assert "main # why" in git(root, "show", f"{made}:apps/both.yaml")
    assert git(root, "status", "--porcelain") == "" and git(root, "branch", "--show-current").strip() == "main"


def test_a_patched_tree_has_other_ids_where_its_files_are_and_the_same_elsewhere() -> None:
    inner = TextTree({"a/b.yaml": "one", "a/c.yaml": "two", "d/e.yaml": "three"})
    tree = PatchedTree(inner, {"a/b.yaml": b"other"})
    assert (tree.read("a/b.yaml"), tree.read("a/c.yaml")) == (b"other", b"two")
    for path, is_same in (("", False), ("a", False), ("a/b.yaml", False), ("a/c.yaml", True), ("d", True)):
        mine, theirs = tree.entry(path), inner.entry(path)
        assert mine and theirs and (mine.id == theirs.id) is is_same, path
    assert [each.name for each in tree.listing("a")] == ["b.yaml", "c.yaml"]
    assert tree.entry("nothing") is None


def test_a_folder_counts_by_itself_only_where_an_application_reads_its_repository(root: Path, tmp_path: Path) -> None:
    source = {"repoURL": "https://git.example/ml.git", "path": "web"}
    app = read_application({"metadata": {"name": "web"}, "spec": {"source": source}})
    files = Files.below(str(root))
    assert not files.is_read_by([app], SourceSettings())
    git(root, "remote", "add", "origin", "git@git.example:ml")
    assert files.is_read_by([app], SourceSettings())
    place = tmp_path / "mirrors" / "ml.git"
    place.mkdir(parents=True)
    git(place, "init", "-q", "--bare")
    git(root, "remote", "set-url", "origin", str(place))
    assert not files.is_read_by([app], SourceSettings())
    assert files.is_read_by([app], read_settings({"source.mirrors": f"https://git.example file://{tmp_path}/mirrors"}))
