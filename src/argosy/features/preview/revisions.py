"""The two states that are compared.

In: words such as `main`, `main...feature`, `HEAD~1..`. Out: both as trees, and the files that differ. Never: writes;
fetches; takes a word for a ref that git does not know.
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
_TARGETS: Final = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")  # what CI says is merged into
_REQUEST: Final = (
    _TARGETS,
    ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
    ("GITHUB_REF", "CI_MERGE_REQUEST_IID"),
)
_USUAL: Final = ("main", "master")
WORKING: Final = "working tree"


@dataclass(frozen=True)
class Side:
    name: str  # as people say it: `main`, `feature/cpu`, `working tree`
    revision: str  # the commit; that of HEAD for a working tree
    tree: Tree
    branches: frozenset[str] = frozenset()  # what an Application may call it

    @property
    def short(self) -> str:
        return self.revision[:SHORT]


@dataclass
class Sides:
    """Both, and the repository that they are of."""

    root: str
    base: Side
    head: Side
    changed: Mapping[str, Changed]
    is_working: bool  # the head is the working tree, edits and new files included
    notes: list[str] = field(default_factory=list)
    repository: Repository | None = None

    @property
    def request(self) -> str:
        """`PR #42 · main…feature`, where CI says that this is one."""
        base, head, number = (next(filter(None, map(os.environ.get, names)), "") for names in _REQUEST)
        number = number.removeprefix("refs/pull/").partition("/")[0]
        is_here = self.is_working or self.head.name == "HEAD"
        return f"PR #{number} · {base}…{head}" if is_here and base and head and number.isdecimal() else ""


class Repository:
    """Git, asked one question after another."""

    def __init__(self, folder: str) -> None:
        root = enclosing(os.path.realpath(folder))
        if root is None:
            told = "is in no Git repository, and two states of one are compared; git init and commit, or --repo DIR"
            raise UserError(told, where=folder)
        self.root = root
        try:
            self.history = History(Path(root), own_folder(root), shared_folder(root))
        except (OSError, UnicodeError) as error:
            raise UserError(f"its repository cannot be read: {error}; clone it again", where=folder) from None
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        from argosy.errors import SourceError
        from argosy.gitops.source.git.command import GitFailed

        try:
            return self._runner.run(work) if not _is_running() else _beside(work)
        except GitFailed as error:
            advice = "if it is a partial clone: git fetch --refetch, else git fsck"
            told = f"git could not read all of this repository; {advice}"
            raise SourceError(told, where=self.root) from error

    def commit(self, ref: str) -> str:
        return "" if not ref or ref.startswith("-") else self.run(self.history.commit(ref))

    def at(self, ref: str) -> tuple[str, Tree] | None:
        """What a branch or tag that is known here holds; the remote's own before a copy that may be old."""
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
    """For callers that are in a loop themselves, as tests are."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def is_range(word: str) -> bool:
    return ".." in word


def open_sides(repository: Repository, word: str = "") -> Sides:
    """`A` and `A...B` begin where B left A, as a merge would; `A..B` begins at A itself. No B: the working tree."""
    repo, history = repository, repository.history
    first, is_exact, second = _split(word)
    head_commit = repo.commit(second or "HEAD")
    if not head_commit:
        if second:
            raise _unknown(second, word)
        raise UserError("has no commit yet, and two states are compared; commit first", where=repo.root)
    notes: list[str] = []
    first = first or _default(repo, notes)
    begun = repo.commit(first)
    if not begun:
        raise _unknown(first, word)
    base_commit = begun if is_exact else repo.run(history.merge_base(begun, head_commit))
    if not base_commit:
        shallow = "this clone is shallow: git fetch --unshallow (fetch-depth: 0 in a workflow)"
        advice = shallow if history.is_shallow else f"to compare them as they are: argosy preview {first}.."
        raise UserError(f"have no commit in common here; {advice}", where=f"{first} and {second or 'HEAD'}")
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
    """What a merge would go to: what CI says, the remote's default branch, main; else only edits are seen."""
    names = list(remotes(repo.root))
    for target in filter(None, (os.environ.get(name) for name in _TARGETS)):
        for name in (*(f"{remote}/{target}" for remote in names), target):
            if repo.commit(name):
                return name
        advice = f"fetch-depth: 0 (GitHub), GIT_DEPTH: 0 (GitLab), or git fetch origin {target}"
        raise UserError(f"is what this is merged into, and is not in this clone; {advice}", where=target)
    for remote in names:
        if (found := repo.run(repo.history.default_ref(remote))) and repo.commit(found):
            return found
    for name in (*(f"{remote}/{usual}" for remote in names for usual in _USUAL), *_USUAL):
        if repo.commit(name):
            return name
    notes.append("no branch main or master is known here: only what is not committed is compared; name a base")
    return "HEAD"


def _branches(repo: Repository, name: str) -> frozenset[str]:
    """A ref without the remote's name too: Applications know nothing of remotes."""
    if name == "HEAD":
        return frozenset(filter(None, {head_of(repo.root).branch}))
    short = {name.removeprefix(f"{remote}/") for remote in remotes(repo.root)}
    return frozenset({name, *short})


def _unknown(ref: str, word: str) -> UserError:
    where = "" if ref == word else f" of {word}"
    told = f"git knows no such branch, tag or commit{where}; correct it, or fetch it: git fetch origin"
    return UserError(told, where=ref)


def named_apps(repository: Repository, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The range that was typed, if the first word is one, and what is left: names of Applications."""
    if words and (is_range(words[0]) or repository.commit(words[0])):
        return words[0], tuple(words[1:])
    return "", tuple(words)
