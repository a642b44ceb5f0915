"""The trees of a build: the source's own tree, and those of remote bases.

In: paths and URLs. Out: locations in these trees, and their names in messages.
Never: looks up a path of one tree in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.errors import LimitError, RenderError, SourceError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.remote_url_parser import (
    RemoteBase,
    has_password,
    is_local_path,
    is_unversioned_file_url,
    looks_remote,
    parse_remote,
)
from argosy.gitops.render.kustomize.tree_paths import is_within, join_path, resolve_path
from argosy.gitops.render.lfs_check import reject_lfs_pointer

FetchRemoteTree = Callable[[str, str], FileTree]
"""Fetches the tree of a repository by URL and ref."""

_MAX_REMOTE_BASES: Final = 100


@dataclass(frozen=True, eq=False)
class BuildTree:
    """A tree with files of a build; the source's own tree has no URL."""

    tree: FileTree
    url: str = ""
    ref: str = ""

    def format_path(self, path: str) -> str:
        """Format a file for messages and origins."""
        return f"{self.url}//{path}?ref={self.ref}" if self.url else path

    def locate(self, folder: str, path: str, where: str) -> TreeLocation:
        resolved_path, kind = resolve_path(self.tree, join_path(folder, path, where), where)
        return TreeLocation(self, resolved_path, kind)


class TreeLocation(NamedTuple):
    """A path in a tree, and its kind: `file`, `folder` or `` (no such path)."""

    build_tree: BuildTree
    path: str
    kind: str

    @property
    def display_path(self) -> str:
        return self.build_tree.format_path(self.path)

    def contains(self, other: TreeLocation) -> bool:
        return self.build_tree is other.build_tree and is_within(other.path, self.path)

    def read(self) -> bytes:
        return reject_lfs_pointer(self.build_tree.tree.read_file(self.path), self.display_path)


def split_display_path(display_path: str) -> tuple[str, str, str]:
    """Split a formatted file into URL, ref and path; URL and ref are empty for the source's own tree."""
    url_and_path, separator, ref = display_path.rpartition("?ref=")
    if not separator:
        return "", "", display_path
    url, _, path = url_and_path.rpartition("//")
    return url, ref, path


class BuildTrees:
    """The source's own tree, and the trees of remote bases; each remote is fetched once."""

    def __init__(self, tree: FileTree, fetch: FetchRemoteTree | None = None) -> None:
        self.source_tree = BuildTree(tree)
        self._fetch = fetch
        self._remote_trees: dict[tuple[str, str], BuildTree] = {}

    def locate_remote(self, text: str, where: str) -> TreeLocation | None:
        """Locate a URL in a remote repository; None if the text is a local path."""
        if is_local_path(text):
            return None
        if has_password(text):
            raise RenderError("a remote base's URL has a password: move it to a repository Secret", where=where)
        if is_unversioned_file_url(text):
            message = f"{text} is a remote file, and only Git repositories are fetched: copy it here"
            raise RenderError(message, where=where)
        remote = parse_remote(text)
        if remote is None:
            if looks_remote(text):
                message = f"{text} is remote but not a repository: write https://HOST/OWNER/NAME//PATH?ref=REF"
                raise RenderError(message, where=where)
            return None
        location = self._fetch_remote(remote, text, where).locate("", remote.path, where)
        if location.kind and (location.kind == "file") != remote.is_file:
            raise RenderError(f"{text} is a {location.kind}: use a folder with a kustomization", where=where)
        return location

    def read_file(self, display_path: str) -> bytes:
        """Read a file by its formatted name."""
        url, ref, path = split_display_path(display_path)
        build_tree = self._remote_trees.get((url, ref), self.source_tree)
        return build_tree.tree.read_file(resolve_path(build_tree.tree, path, display_path)[0])

    def _fetch_remote(self, remote: RemoteBase, text: str, where: str) -> BuildTree:
        cached = self._remote_trees.get((remote.url, remote.ref))
        if cached is not None:
            return cached
        if self._fetch is None:
            raise RenderError(f"{text} is remote, and remote bases are not fetched: copy it here", where=where)
        if len(self._remote_trees) >= _MAX_REMOTE_BASES:
            raise LimitError(f"more than {_MAX_REMOTE_BASES} remote bases: copy some of them here", where=where)
        try:
            tree = self._fetch(remote.url, remote.ref)
        except SourceError as error:
            # Keep the type of the error: it says if a retry can help.
            raise type(error)(f"cannot fetch {text}: {error.message}", where=where) from error
        build_tree = self._remote_trees[remote.url, remote.ref] = BuildTree(tree, remote.url, remote.ref)
        return build_tree
