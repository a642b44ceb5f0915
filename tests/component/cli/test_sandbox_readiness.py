"""`argosy sandbox status` says that a sandbox is read-only, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from argosy.apiserver.plane import Plane
from argosy.apiserver.server import serve
from argosy.apiserver.tls import certificates
from argosy.app.folder import DataFolder
from argosy.cli.sandbox_readiness import find_storage_problem
from argosy.model.errors import StorageFull

pytestmark = pytest.mark.anyio


async def test_a_full_disk_is_told_by_the_status_until_it_is_over(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    async with Plane.open() as plane, serve(plane, certificates(folder.tls)) as api:
        assert await asyncio.to_thread(find_storage_problem, folder, api) == ""
        plane.store.refused(StorageFull("the disk is full; free some space"))
        assert await asyncio.to_thread(find_storage_problem, folder, api) == "the disk is full; free some space"
        plane.store.recovered()
        assert await asyncio.to_thread(find_storage_problem, folder, api) == ""
    assert find_storage_problem(folder, api) == "", "nobody listens any more"
