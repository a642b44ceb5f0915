"""A read-only repository of promotions: a bare mirror at one commit.

In: a mirror's folder, a commit. Out: the interface of Repository. Never: writes; follows a branch that moves
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.workspace.git_repository import GitRepository, RepositoryPaths, UpstreamState

READ_ONLY_MESSAGE: Final = (
    "is read-only here: promotions are commits; make them in a clone, or start: argosy serve --repo DIR"
)


class MirrorRepository(GitRepository):
    """`objects` is the mirror's own reader, so that files are read without starting git; logs still start one."""

    def __init__(self, folder: Path, objects: ObjectReader, commit: str, display_url: str) -> None:
        super().__init__(RepositoryPaths(folder, folder, folder, None))
        self._objects = objects
        self._commit, self._display_url = commit, display_url

    @property
    def branch(self) -> str:
        return ""

    def get_head(self) -> str:
        return self._commit

    def get_upstream_state(self) -> UpstreamState:
        """A mirror has exactly what was pushed, so there is nothing to pull."""
        return UpstreamState(self.is_shallow)

    @contextmanager
    def lock_promotions(self) -> Iterator[None]:
        self._refuse()
        yield

    def _refuse(self) -> None:
        raise UserError(READ_ONLY_MESSAGE, where=self._display_url)

    def create_commit(self, base: str, files: Mapping[str, bytes], message: str) -> str:
        raise UserError(READ_ONLY_MESSAGE, where=self._display_url)

    def move_branch(self, branch: str, commit: str, before: str, reason: str) -> None:
        raise UserError(READ_ONLY_MESSAGE, where=self._display_url)
