"""What a render in a worker process needs of other repositories, fetched by the process that asks for the render.

In: a URL and a ref, or requests for charts. Out: file trees. Never: fetches; imports the reconciler, because each
worker imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argosy.errors import ArgosyError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.settings import ChartRequest


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


class ChartsNeeded(ArgosyError):
    """A render met dependencies of a chart that have not been fetched yet."""

    def __init__(self, requests: Sequence[ChartRequest]) -> None:
        super().__init__(f"{', '.join(request.name for request in requests)} needed")
        self.requests = tuple(requests)

    def __reduce__(self) -> tuple[type[ChartsNeeded], tuple[Sequence[ChartRequest]], dict[str, object]]:
        return ChartsNeeded, (self.requests,), vars(self)


@dataclass(frozen=True)
class FetchedCharts:
    """Returns the charts that were fetched, and raises ChartsNeeded if one is missing."""

    trees: Mapping[ChartRequest, FileTree]

    def __call__(self, requests: Sequence[ChartRequest]) -> Sequence[FileTree]:
        if missing := [request for request in requests if request not in self.trees]:
            raise ChartsNeeded(missing)
        return [self.trees[request] for request in requests]


class GitAccessNeeded(ArgosyError):
    """A render met a plug-in that wants Git credentials."""


@dataclass(frozen=True)
class PluginGitAccess:
    """Returns the variables for git in a plug-in, and raises GitAccessNeeded if they were not prepared."""

    variables: Mapping[str, str] | None

    def __call__(self) -> Mapping[str, str]:
        if self.variables is None:
            raise GitAccessNeeded
        return self.variables
