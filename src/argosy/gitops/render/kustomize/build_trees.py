"""The trees of a build: the source's own tree, and those of remote bases.

In: paths and URLs. Out: locations in these trees, and their names in messages.
Never: looks up a path of one tree in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.errors import LimitError, RenderError, SourceError
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.remote_bases import (
    Remote,
    has_password,
    is_plain_file,
    is_plain_path,
    looks_remote,
    remote_of,
)
from argosy.gitops.render.kustomize.tree_paths import is_within, joined, located
from argosy.gitops.render.lfs_check import refuse_pointer

Fetch = Callable[[str, str], Tree]
"""Fetches the tree of a repository by URL and ref."""

_MOST_REMOTES: Final = 100


@dataclass(frozen=True, eq=False)
class Ground:
    """A tree with files of a build; the source's own tree has no URL."""

    tree: Tree
    url: str = ""
    ref: str = ""

    def name(self, path: str) -> str:
        """Format a file for messages and origins."""
        return f"{self.url}//{path}?ref={self.ref}" if self.url else path

    def find(self, folder: str, path: str, where: str) -> Spot:
        place, kind = located(self.tree, joined(folder, path, where), where)
        return Spot(self, place, kind)


class Spot(NamedTuple):
    """A path in a tree, and its kind: `file`, `folder` or `` (no such path)."""

    ground: Ground
    path: str
    kind: str

    @property
    def name(self) -> str:
        return self.ground.name(self.path)

    def holds(self, other: Spot) -> bool:
        return self.ground is other.ground and is_within(other.path, self.path)

    def read(self) -> bytes:
        return refuse_pointer(self.ground.tree.read(self.path), self.name)


def parted(name: str) -> tuple[str, str, str]:
    """Split a formatted file into URL, ref and path; URL and ref are empty for the source's own tree."""
    rest, mark, ref = name.rpartition("?ref=")
    if not mark:
        return "", "", name
    url, _, path = rest.rpartition("//")
    return url, ref, path


class Grounds:
    """The source's own tree, and the trees of remote bases; each remote is fetched once."""

    def __init__(self, tree: Tree, fetch: Fetch | None = None) -> None:
        self.own = Ground(tree)
        self._fetch = fetch
        self._known: dict[tuple[str, str], Ground] = {}

    def find(self, text: str, where: str) -> Spot | None:
        """Locate a URL in a remote repository; None if the text is a local path."""
        if is_plain_path(text):
            return None
        if has_password(text):
            raise RenderError("a remote base's URL has a password: move it to a repository Secret", where=where)
        if is_plain_file(text):
            message = f"{text} is a remote file, and only Git repositories are fetched: copy it here"
            raise RenderError(message, where=where)
        remote = remote_of(text)
        if remote is None:
            if looks_remote(text):
                message = f"{text} is remote but not a repository: write https://HOST/OWNER/NAME//PATH?ref=REF"
                raise RenderError(message, where=where)
            return None
        spot = self._ground(remote, text, where).find("", remote.path, where)
        if spot.kind and (spot.kind == "file") != remote.is_file:
            raise RenderError(f"{text} is a {spot.kind}: use a folder with a kustomization", where=where)
        return spot

    def read(self, name: str) -> bytes:
        """Read a file by its formatted name."""
        url, ref, path = parted(name)
        ground = self._known.get((url, ref), self.own)
        return ground.tree.read(located(ground.tree, path, name)[0])

    def _ground(self, remote: Remote, text: str, where: str) -> Ground:
        known = self._known.get((remote.url, remote.ref))
        if known is not None:
            return known
        if self._fetch is None:
            raise RenderError(f"{text} is remote, and remote bases are not fetched: copy it here", where=where)
        if len(self._known) >= _MOST_REMOTES:
            raise LimitError(f"more than {_MOST_REMOTES} remote bases: copy some of them here", where=where)
        try:
            tree = self._fetch(remote.url, remote.ref)
        except SourceError as error:
            # Keep the type of the error: it says if a retry can help.
            raise type(error)(f"cannot fetch {text}: {error.message}", where=where) from error
        ground = self._known[remote.url, remote.ref] = Ground(tree, remote.url, remote.ref)
        return ground
