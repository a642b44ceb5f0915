"""Fixtures with real Git repositories for the tests of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.gitops.source.repository_access_settings import SourceLimits, SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from support.repositories import Repository

SERVED = "served"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / SERVED / "models.git")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Repositories]]:
    """Return a factory of Repositories that may read the served repositories; closes them at the end of the test."""
    opened_repositories: list[Repositories] = []

    def open_(
        settings: SourceSettings | None = None, *, limits: SourceLimits | None = None, **more: object
    ) -> Repositories:
        settings = settings or SourceSettings(local_roots=(tmp_path / SERVED,), limits=limits or SourceLimits())
        opened_repositories.append(Repositories(tmp_path / "mirrors", settings, **more))  # type: ignore[arg-type]
        return opened_repositories[-1]

    yield open_
    for repositories in opened_repositories:
        repositories.close()
