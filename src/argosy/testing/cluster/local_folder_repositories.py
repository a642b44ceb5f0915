"""Repositories, some of which are replaced by local folders, including uncommitted changes.

In: repository URLs with their folders. Out: Checkout. Never: fetches a repository that a folder replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.workspace.checked_out_head import read_head

LOCAL: Final = "working-tree"  # the revision of uncommitted files


class WorkingTrees(Repositories):
    def __init__(self, mirrors: Path, homes: Mapping[str, Path]) -> None:
        super().__init__(mirrors, SourceSettings())
        self._homes = homes
        self.looks = 0  # incremented when the files may have changed

    async def checkout(self, url: str, ref: str, **more: Any) -> Checkout:
        home = self._homes.get(url)
        if home is None:
            return await super().checkout(url, ref, **more)
        # Renderings are cached by revision, so changed files need a new revision name.
        revision = read_head(str(home)).commit if self.looks <= 1 else ""
        return Checkout(FolderTree(home), revision or f"{LOCAL}-{self.looks}")

    def is_local(self, url: str) -> bool:
        return url not in self._homes and super().is_local(url)
