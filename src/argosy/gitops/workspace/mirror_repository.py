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
from argosy.gitops.workspace.git_repository import Clone, Place, Repository

READ_ONLY: Final = "is read-only here: promotions are commits; make them in a clone, or start: argosy serve --repo DIR"


class MirrorRepository(Repository):
    """`objects` is the mirror's own reader, so that files are read without starting git; logs still start one."""

    def __init__(self, folder: Path, objects: ObjectReader, commit: str, shown: str) -> None:
        super().__init__(Place(folder, folder, folder, None))
        self._objects = objects
        self._commit, self._shown = commit, shown

    @property
    def branch(self) -> str:
        return ""

    def head(self) -> str:
        return self._commit

    def clone(self) -> Clone:
        """A mirror has exactly what was pushed, so there is nothing to pull."""
        return Clone(self.is_shallow)

    @contextmanager
    def alone(self) -> Iterator[None]:
        self._refuse()
        yield

    def _refuse(self) -> None:
        raise UserError(READ_ONLY, where=self._shown)

    def stage(self, base: str, files: Mapping[str, bytes], message: str) -> str:
        raise UserError(READ_ONLY, where=self._shown)

    def move(self, branch: str, commit: str, before: str, why: str) -> None:
        raise UserError(READ_ONLY, where=self._shown)
