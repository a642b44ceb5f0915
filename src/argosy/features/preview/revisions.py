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
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.git.local_repository import Changed, History
from argosy.gitops.source.git.working_tree import LaidOver
from argosy.gitops.workspace.git_heads import head_of
from argosy.gitops.workspace.paths import enclosing, own_folder, remotes, shared_folder

T = TypeVar("T")
SHORT: Final = 7
_TARGETS: Final = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")  # set by CI
_REQUEST: Final = (
    _TARGETS,
    ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
    ("GITHUB_REF", "CI_MERGE_REQUEST_IID"),
)
_USUAL: Final = ("main", "master")
WORKING: Final = "working tree"


@dataclass(frozen=True)
class Side:
    name: str  # for display: `main`, `feature/cpu`, `working tree`
    revision: str  # the commit; HEAD for a working tree
    tree: Tree
    branches: frozenset[str] = frozenset()  # targetRevisions that mean this side

    @property
    def short(self) -> str:
        return self.revision[:SHORT]


@dataclass
class Sides:
    """Base and head of a comparison."""

    root: str
    base: Side
    head: Side
    changed: Mapping[str, Changed]
    is_working: bool  # the head is the working tree with edited and new files
    notes: list[str] = field(default_factory=list)
    repository: Repository | None = None

    @property
    def request(self) -> str:
        """`PR #42 · main…feature` if CI runs for a pull request, else empty."""
        base, head, number = (next(filter(None, map(os.environ.get, names)), "") for names in _REQUEST)
        number = number.removeprefix("refs/pull/").partition("/")[0]
        is_here = self.is_working or self.head.name == "HEAD"
        return f"PR #{number} · {base}…{head}" if is_here and base and head and number.isdecimal() else ""


class Repository:
    """Synchronous access to a local Git repository."""

    def __init__(self, folder: str) -> None:
        root = enclosing(os.path.realpath(folder))
        if root is None:
            told = "not in a Git repository; run git init and commit, or use --repo DIR"
            raise UserError(told, where=folder)
        self.root = root
        try:
            self.history = History(Path(root), own_folder(root), shared_folder(root))
        except (OSError, UnicodeError) as error:
            raise UserError(f"cannot read the repository: {error}; clone it again", where=folder) from None
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        from argosy.errors import SourceError
        from argosy.gitops.source.git.command import GitFailed

        try:
            return self._runner.run(work) if not _is_running() else _beside(work)
        except GitFailed as error:
            advice = "if it is a partial clone: git fetch --refetch, else git fsck"
            told = f"git cannot read all objects of this repository; {advice}"
            raise SourceError(told, where=self.root) from error

    def commit(self, ref: str) -> str:
        return "" if not ref or ref.startswith("-") else self.run(self.history.commit(ref))

    def at(self, ref: str) -> tuple[str, Tree] | None:
        """Return commit and tree of a branch or tag; remote branches win, because local ones may be old."""
        for name in (*(f"{remote}/{ref}" for remote in remotes(self.root)), ref):
            if found := self.commit(name):
                return found, self.run(self.history.tree(found))
        return None

    def close(self) -> None:
        self.history.close()
        self._runner.close()


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _beside(work: Coroutine[Any, Any, T]) -> T:
    """For callers inside a running event loop, such as tests."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def is_range(word: str) -> bool:
    return ".." in word


def open_sides(repository: Repository, word: str = "") -> Sides:
    """`A` and `A...B` compare from the merge base, `A..B` from A itself. Without B, the head is the working tree."""
    repo, history = repository, repository.history
    first, is_exact, second = _split(word)
    head_commit = repo.commit(second or "HEAD")
    if not head_commit:
        if second:
            raise _unknown(second, word)
        raise UserError("the repository has no commit yet; commit first", where=repo.root)
    notes: list[str] = []
    first = first or _default(repo, notes)
    begun = repo.commit(first)
    if not begun:
        raise _unknown(first, word)
    base_commit = begun if is_exact else repo.run(history.merge_base(begun, head_commit))
    if not base_commit:
        shallow = "this clone is shallow: git fetch --unshallow (fetch-depth: 0 in a workflow)"
        advice = shallow if history.is_shallow else f"to compare them directly: argosy preview {first}.."
        raise UserError(f"no common commit in this clone; {advice}", where=f"{first} and {second or 'HEAD'}")
    changed = repo.run(history.changed(base_commit, head_commit if second else ""))
    base_tree = repo.run(history.tree(base_commit))
    if second:
        head = Side(second, head_commit, repo.run(history.tree(head_commit)), _branches(repo, second))
    else:
        laid = LaidOver(base_tree, FolderTree(Path(repo.root)), changed)
        head = Side(WORKING, head_commit, laid, _branches(repo, "HEAD"))
    base = Side(first, base_commit, base_tree, _branches(repo, first))
    return Sides(repo.root, base, head, {each.path: each for each in changed}, not second, notes, repo)


def _split(word: str) -> tuple[str, bool, str]:
    if "..." in word:
        first, _, second = word.partition("...")
        return first, False, second
    first, dots, second = word.partition("..")
    return first, bool(dots), second


def _default(repo: Repository, notes: list[str]) -> str:
    """Find the merge target: CI's target branch, the remote's default branch, or main; else HEAD."""
    names = list(remotes(repo.root))
    for target in filter(None, (os.environ.get(name) for name in _TARGETS)):
        for name in (*(f"{remote}/{target}" for remote in names), target):
            if repo.commit(name):
                return name
        advice = f"fetch-depth: 0 (GitHub), GIT_DEPTH: 0 (GitLab), or git fetch origin {target}"
        raise UserError(f"the target branch is not in this clone; {advice}", where=target)
    for remote in names:
        if (found := repo.run(repo.history.default_ref(remote))) and repo.commit(found):
            return found
    for name in (*(f"{remote}/{usual}" for remote in names for usual in _USUAL), *_USUAL):
        if repo.commit(name):
            return name
    notes.append("no branch main or master found: only uncommitted changes are compared; choose a base")
    return "HEAD"


def _branches(repo: Repository, name: str) -> frozenset[str]:
    """Add the name without the remote, because targetRevision has no remote."""
    if name == "HEAD":
        return frozenset(filter(None, {head_of(repo.root).branch}))
    short = {name.removeprefix(f"{remote}/") for remote in remotes(repo.root)}
    return frozenset({name, *short})


def _unknown(ref: str, word: str) -> UserError:
    where = "" if ref == word else f" of {word}"
    told = f"unknown branch, tag or commit{where}; correct it, or fetch it: git fetch origin"
    return UserError(told, where=ref)


def named_apps(repository: Repository, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Split arguments into the range, if the first one is a ref or range, and the names of Applications."""
    if words and (is_range(words[0]) or repository.commit(words[0])):
        return words[0], tuple(words[1:])
    return "", tuple(words)
