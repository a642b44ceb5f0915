"""Adds the files of submodules to the tree of a commit.

In: a checkout, a function that fetches a commit of another repository. Out: a checkout whose tree has the submodules'
files. Never: checks a commit out; leaves a submodule out because it cannot be fetched, which would prune its objects.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import LimitError, SourceRefused, UserError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.application.gitmodules import Submodule, resolve_submodule_url
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.validated_path_components import split_path

MAX_SUBMODULES: Final = 100  # of one source, with those of its submodules
MAX_DEPTH: Final = 5
SUBMODULES_SETTING: Final = "reposerver.enable.git.submodule"

FetchCommit = Callable[[str, str], Awaitable[Checkout]]
"""Fetches a commit of a repository, by URL and id, if the project permits it."""


@dataclass(frozen=True, slots=True)
class TreeWithSubmodules:
    """Implements `FileTree`. The id of a submodule's folder is its commit, so equal ids still mean equal content."""

    tree: FileTree
    submodules: Mapping[str, FileTree]

    @property
    def id(self) -> str:
        return str(getattr(self.tree, "id", ""))

    def find_entry(self, path: str) -> TreeEntry | None:
        tree, path = self._find_tree(path, enters=False)
        return tree.find_entry(path)

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        tree, path = self._find_tree(path, enters=True)
        return tree.list_folder(path)

    def read_file(self, path: str) -> bytes:
        tree, path = self._find_tree(path, enters=False)
        return tree.read_file(path)

    def _find_tree(self, path: str, *, enters: bool) -> tuple[FileTree, str]:
        """Return the tree of a path and the path in it. `enters`: a submodule's folder is its root."""
        parts = split_path(path)
        for count in range(1, len(parts) + enters):
            if (tree := self.submodules.get("/".join(parts[:count]))) is not None:
                return tree, "/".join(parts[count:])
        return self.tree, path


def find_checkout_without_submodules(checkout: Checkout) -> Checkout | None:
    """Return the checkout if .gitmodules is known to name no submodule; None if some may have to be fetched."""
    tree = checkout.tree
    if not isinstance(tree, GitTree):
        return checkout
    if tree.submodules is None or tree.submodules:
        return None
    return Checkout(tree.require_submodules(frozenset()), checkout.revision)


async def add_submodules(checkout: Checkout, url: str, fetch: FetchCommit) -> Checkout:
    """argo: fetch the submodules of the checkout, and their submodules. Raises SourceError if one cannot be fetched.

    A submodule that .gitmodules does not name is an error as soon as it is read.
    """
    budget = [MAX_SUBMODULES]
    return Checkout(await _add_to_tree(checkout.tree, url, fetch, budget, 0), checkout.revision)


async def _add_to_tree(tree: FileTree, url: str, fetch: FetchCommit, budget: list[int], depth: int) -> FileTree:
    if not isinstance(tree, GitTree):
        return tree
    named = tree.submodules if tree.submodules is not None else await asyncio.to_thread(tree.load_submodules)
    skipped = frozenset(submodule.path for submodule, _ in named if submodule.is_skipped)
    submodules = [(submodule, commit) for submodule, commit in named if not submodule.is_skipped]
    tree = tree.require_submodules(skipped)
    if not submodules:
        return tree
    budget[0] -= len(submodules)
    if budget[0] < 0 or depth >= MAX_DEPTH:
        message = f"has more than {MAX_SUBMODULES} submodules, or submodules nested more than {MAX_DEPTH} deep"
        raise LimitError(f"{message}; use their repositories as sources", where=url)
    trees: dict[str, FileTree] = {}
    for submodule, commit in submodules:
        try:
            address, fetched = await _fetch_submodule(submodule, commit, url, fetch)
            trees[submodule.path] = await _add_to_tree(fetched.tree, address, fetch, budget, depth + 1)
        except UserError as error:
            located = copy.copy(error)  # Applications may share one error of a host
            located.message = f"{error.message} (submodule {submodule.path} of {parse_url(url)})"
            raise located from error
    return TreeWithSubmodules(tree, trees)


async def _fetch_submodule(submodule: Submodule, commit: str, url: str, fetch: FetchCommit) -> tuple[str, Checkout]:
    """Return the address of the submodule and its checkout."""
    address = resolve_submodule_url(submodule.url, url)
    if parse_url(address).scheme == "file" != parse_url(url).scheme:
        raise SourceRefused("is on this machine, and the repository is not; use an address of a host")
    return address, await fetch(address, commit)
