"""Opens the two states of a repository to compare.

In: a range such as `main`, `main...feature`, `HEAD~1..`. Out: both file trees and the changed files. Never: writes;
fetches; accepts a ref that git does not know.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from argosy.errors import UserError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.git.local_repository import ChangedFile, LocalRepository
from argosy.gitops.source.git.working_tree_overlay import WorkingTreeOverlay
from argosy.gitops.workspace.checked_out_head import read_head
from argosy.gitops.workspace.enclosing_repository_lookup import (
    find_enclosing_repository,
    find_git_folder,
    find_shared_git_folder,
    load_remotes,
)

T = TypeVar("T")
SHORT_COMMIT_CHARACTERS: Final = 7
_TARGET_BRANCH_VARIABLES: Final = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")  # set by CI
_PULL_REQUEST_VARIABLES: Final = (
    _TARGET_BRANCH_VARIABLES,
    ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
    ("GITHUB_REF", "CI_MERGE_REQUEST_IID"),
)
_DEFAULT_BRANCHES: Final = ("main", "master")
WORKING_TREE_NAME: Final = "working tree"


@dataclass(frozen=True)
class ComparisonSide:
    name: str  # for display: `main`, `feature/cpu`, `working tree`
    revision: str  # the commit; HEAD for a working tree
    tree: FileTree
    branches: frozenset[str] = frozenset()  # targetRevisions that mean this side

    @property
    def short(self) -> str:
        return self.revision[:SHORT_COMMIT_CHARACTERS]


@dataclass
class ComparisonSides:
    """Base and head of a comparison."""

    root: str
    base: ComparisonSide
    head: ComparisonSide
    changed: Mapping[str, ChangedFile]
    has_working_tree: bool  # the head is the working tree with edited and new files
    notes: list[str] = field(default_factory=list)
    repository: PreviewRepository | None = None

    @property
    def pull_request(self) -> str:
        """`PR #42 · main…feature` if CI runs for a pull request, else empty."""
        base, head, number = (next(filter(None, map(os.environ.get, names)), "") for names in _PULL_REQUEST_VARIABLES)
        number = number.removeprefix("refs/pull/").partition("/")[0]
        is_checked_out = self.has_working_tree or self.head.name == "HEAD"
        return f"PR #{number} · {base}…{head}" if is_checked_out and base and head and number.isdecimal() else ""


class PreviewRepository:
    """Synchronous access to a local Git repository."""

    def __init__(self, folder: str) -> None:
        root = find_enclosing_repository(os.path.realpath(folder))
        if root is None:
            problem = "not in a Git repository; run git init and commit, or use --repo DIR"
            raise UserError(problem, where=folder)
        self.root = root
        try:
            self.history = LocalRepository(Path(root), find_git_folder(root), find_shared_git_folder(root))
        except (OSError, UnicodeError) as error:
            raise UserError(f"cannot read the repository: {error}; clone it again", where=folder) from None
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        from argosy.errors import SourceError
        from argosy.gitops.source.git.command import GitFailed

        try:
            return self._runner.run(work) if not _is_event_loop_running() else _run_in_thread(work)
        except GitFailed as error:
            advice = "if it is a partial clone: git fetch --refetch, else git fsck"
            problem = f"git cannot read all objects of this repository; {advice}"
            raise SourceError(problem, where=self.root) from error

    def commit(self, ref: str) -> str:
        return "" if not ref or ref.startswith("-") else self.run(self.history.resolve_commit(ref))

    def resolve_ref(self, ref: str) -> tuple[str, FileTree] | None:
        """Return commit and tree of a branch or tag; remote branches win, because local ones may be old."""
        for name in (*(f"{remote}/{ref}" for remote in load_remotes(self.root)), ref):
            if commit_id := self.commit(name):
                return commit_id, self.run(self.history.load_tree(commit_id))
        return None

    def close(self) -> None:
        self.history.close()
        self._runner.close()


def _is_event_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """For callers inside a running event loop, such as tests."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def is_range(word: str) -> bool:
    return ".." in word


def open_sides(repository: PreviewRepository, word: str = "") -> ComparisonSides:
    """`A` and `A...B` compare from the merge base, `A..B` from A itself. Without B, the head is the working tree."""
    repo, history = repository, repository.history
    first, is_exact, second = _split_range(word)
    head_commit = repo.commit(second or "HEAD")
    if not head_commit:
        if second:
            raise _build_unknown_ref_error(second, word)
        raise UserError("the repository has no commit yet; commit first", where=repo.root)
    notes: list[str] = []
    first = first or _find_default_base(repo, notes)
    base_tip = repo.commit(first)
    if not base_tip:
        raise _build_unknown_ref_error(first, word)
    base_commit = base_tip if is_exact else repo.run(history.find_merge_base(base_tip, head_commit))
    if not base_commit:
        shallow = "this clone is shallow: git fetch --unshallow (fetch-depth: 0 in a workflow)"
        advice = shallow if history.is_shallow else f"to compare them directly: argosy preview {first}.."
        raise UserError(f"no common commit in this clone; {advice}", where=f"{first} and {second or 'HEAD'}")
    changed = repo.run(history.list_changed_files(base_commit, head_commit if second else ""))
    base_tree = repo.run(history.load_tree(base_commit))
    if second:
        head = ComparisonSide(
            second, head_commit, repo.run(history.load_tree(head_commit)), _list_branch_names(repo, second)
        )
    else:
        working_tree = WorkingTreeOverlay(base_tree, FolderTree(Path(repo.root)), changed)
        head = ComparisonSide(WORKING_TREE_NAME, head_commit, working_tree, _list_branch_names(repo, "HEAD"))
    base = ComparisonSide(first, base_commit, base_tree, _list_branch_names(repo, first))
    return ComparisonSides(
        repo.root, base, head, {changed_file.path: changed_file for changed_file in changed}, not second, notes, repo
    )


def _split_range(word: str) -> tuple[str, bool, str]:
    if "..." in word:
        first, _, second = word.partition("...")
        return first, False, second
    first, dots, second = word.partition("..")
    return first, bool(dots), second


def _find_default_base(repo: PreviewRepository, notes: list[str]) -> str:
    """Find the merge target: CI's target branch, the remote's default branch, or main; else HEAD."""
    names = list(load_remotes(repo.root))
    for target in filter(None, (os.environ.get(name) for name in _TARGET_BRANCH_VARIABLES)):
        for name in (*(f"{remote}/{target}" for remote in names), target):
            if repo.commit(name):
                return name
        advice = f"fetch-depth: 0 (GitHub), GIT_DEPTH: 0 (GitLab), or git fetch origin {target}"
        raise UserError(f"the target branch is not in this clone; {advice}", where=target)
    for remote in names:
        if (default_ref := repo.run(repo.history.find_default_ref(remote))) and repo.commit(default_ref):
            return default_ref
    for name in (*(f"{remote}/{branch}" for remote in names for branch in _DEFAULT_BRANCHES), *_DEFAULT_BRANCHES):
        if repo.commit(name):
            return name
    notes.append("no branch main or master found: only uncommitted changes are compared; choose a base")
    return "HEAD"


def _list_branch_names(repo: PreviewRepository, name: str) -> frozenset[str]:
    """Add the name without the remote, because targetRevision has no remote."""
    if name == "HEAD":
        return frozenset(filter(None, {read_head(repo.root).branch}))
    short = {name.removeprefix(f"{remote}/") for remote in load_remotes(repo.root)}
    return frozenset({name, *short})


def _build_unknown_ref_error(ref: str, word: str) -> UserError:
    context = "" if ref == word else f" of {word}"
    problem = f"unknown branch, tag or commit{context}; correct it, or fetch it: git fetch origin"
    return UserError(problem, where=ref)


def split_arguments(repository: PreviewRepository, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Split arguments into the range, if the first one is a ref or range, and the names of Applications."""
    if words and (is_range(words[0]) or repository.commit(words[0])):
        return words[0], tuple(words[1:])
    return "", tuple(words)
