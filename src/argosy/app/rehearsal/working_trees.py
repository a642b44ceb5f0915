"""Repositories, some of which are read from folders as they are now, committed or not.

In: addresses with their folders. Out: Checkout. Never: asks a host for what a folder stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from argosy.app.rendering.heads import head_of
from argosy.model.flow import Checkout
from argosy.source.repositories import Repositories
from argosy.source.settings import SourceSettings
from argosy.source.trees import FolderTree

LOCAL: Final = "local"  # stands for the revision of a folder that is in no repository


class WorkingTrees(Repositories):
    def __init__(self, mirrors: Path, homes: Mapping[str, Path]) -> None:
        super().__init__(mirrors, SourceSettings())
        self._homes = homes

    async def checkout(self, url: str, ref: str, **more: Any) -> Checkout:
        home = self._homes.get(url)
        if home is None:
            return await super().checkout(url, ref, **more)
        return Checkout(FolderTree(home), head_of(str(home)).commit or LOCAL)

    def is_local(self, url: str) -> bool:
        return url not in self._homes and super().is_local(url)
