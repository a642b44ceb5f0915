"""Resources that all tests of a run share: the repository, the background loop, the render processes.

In: a folder. Out: Repo, Sandbox. Never: creates anything before it is used.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.testing.user_repository_renders import Repo

if TYPE_CHECKING:
    from argosy.isolation.trusted_process_pool import ProcessPool
    from argosy.testing.background_event_loop import Background
    from argosy.testing.sandbox import Sandbox


class Workshop:
    def __init__(self, root: Path, addons: str) -> None:
        self.repo = Repo(root)
        self._addons = addons  # for sandboxes

    def sandbox(self, folder: Path) -> Sandbox:
        from argosy.testing.sandbox import Sandbox

        return Sandbox(self._background, folder, self._crew, lambda: self.repo, self._addons)

    @cached_property
    def _background(self) -> Background:
        from argosy.testing.background_event_loop import Background

        return Background()

    @cached_property
    def _crew(self) -> ProcessPool:
        from argosy.isolation.trusted_process_pool import ProcessPool

        return ProcessPool(workers=1)

    def close(self) -> None:
        self.repo.close()
        if "_background" in self.__dict__:
            self._background.run(self._crew.close())
            self._background.close()
