"""Remote bases of a render in a worker process, fetched by the process that asks for the render.

In: a URL and a ref. Out: a file tree. Never: fetches; imports the reconciler, because each worker imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.errors import ArgosyError
from argosy.gitops.application.file_tree_protocol import FileTree


class RemoteBaseNeeded(ArgosyError):
    """A render met a remote base that has not been fetched yet."""

    def __init__(self, url: str, ref: str) -> None:
        super().__init__(f"{url} at {ref or 'HEAD'} is wanted")
        self.url, self.ref = url, ref


@dataclass(frozen=True)
class FetchedRemoteBases:
    """Returns the remote bases that were fetched, and raises RemoteBaseNeeded for others."""

    trees: Mapping[tuple[str, str], FileTree]

    def __call__(self, url: str, ref: str) -> FileTree:
        tree = self.trees.get((url, ref))
        if tree is None:
            raise RemoteBaseNeeded(url, ref)
        return tree
