"""`argosy sandbox status` says that a sandbox is read-only, and why."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path

import pytest

from argosy.apiserver.plane import Plane
from argosy.apiserver.server import serve
from argosy.apiserver.tls import certificates
from argosy.app.folder import DataFolder, Run
from argosy.cli import sandbox, sandbox_readiness
from argosy.cli.sandbox_readiness import find_storage_problem
from argosy.model.errors import StorageFull
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than people would wait."""
    monkeypatch.setattr(sandbox_readiness, "SECONDS", HANG_SECONDS)


async def test_a_full_disk_is_told_by_the_status_until_it_is_over(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    async with Plane.open() as plane, serve(plane, certificates(folder.tls)) as api:
        assert await asyncio.to_thread(find_storage_problem, folder, api) == ""
        plane.store.refused(StorageFull("the disk is full; free some space"))
        assert await asyncio.to_thread(find_storage_problem, folder, api) == "the disk is full; free some space"
        plane.store.recovered()
        assert await asyncio.to_thread(find_storage_problem, folder, api) == ""
    assert find_storage_problem(folder, api) == "", "nobody listens any more"


async def test_the_json_of_the_status_says_why_a_sandbox_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = DataFolder(tmp_path / "data")
    chosen = argparse.Namespace(data_dir=folder.root, output="json")

    async def read_only() -> str | None:
        assert await asyncio.to_thread(sandbox.status, chosen) in (0, 1)
        reason: str | None = json.loads(capsys.readouterr().out)["readOnly"]
        return reason

    assert await read_only() is None, "it does not run"
    async with Plane.open() as plane, serve(plane, certificates(folder.tls)) as api:
        run = Run(pid=os.getpid(), api=api, kubeconfig="", data_dir=str(folder.root))
        monkeypatch.setattr(DataFolder, "running", lambda self: run)
        assert await read_only() is None
        plane.store.refused(StorageFull("the disk is full; free some space"))
        assert await read_only() == "the disk is full; free some space"
