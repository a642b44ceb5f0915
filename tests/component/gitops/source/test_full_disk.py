"""Mirrors on a full disk raise a clear error and recover once there is space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.errors import SourceUnreachable
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from support.repositories import Repository
from support.small_disk import fill_disk, mounted_disk

pytestmark = pytest.mark.anyio
FULL = "the disk of the mirrors is full"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk") as folder:
        yield folder


@pytest.mark.parametrize("is_known", [False, True])
async def test_full_disk_raises_error_and_mirror_recovers_once_there_is_space(
    small_disk: Path, repository: Repository, is_known: bool
) -> None:
    revision = repository.commit({"model.yaml": "a: 1"})
    url = str(repository.path)
    repositories = Repositories(small_disk / "mirrors", SourceSettings(local_roots=(repository.path.parent,)))
    try:
        if is_known:
            assert (await repositories.checkout(url, "main")).revision == revision
            revision = repository.commit({"model.yaml": "a: 2", "more.yaml": "x" * 50_000})
        ballast = fill_disk(small_disk)
        for _ in range(2):
            with pytest.raises(SourceUnreachable, match=FULL):
                await repositories.checkout(url, "main")
        ballast.unlink()
        assert (await repositories.checkout(url, "main")).revision == revision
    finally:
        repositories.close()
