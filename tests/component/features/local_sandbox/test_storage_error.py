"""`argosy sandbox status` and `argosy demo status` report that the store is read-only, and why."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from argosy.cli.sandbox_data_folder_and_lock import DEFAULT_NAME, DEMO_NAME, DataFolder, RunningInstance
from argosy.errors import StorageFull
from argosy.features.demo import cli
from argosy.features.demo.examples import EXAMPLES
from argosy.features.local_sandbox import cli as sandbox
from argosy.features.local_sandbox import storage_error_from_readyz
from argosy.features.local_sandbox.storage_error_from_readyz import find_storage_problem
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.https_server import serve_https
from argosy.sandbox.apiserver.tls import ensure_certificates
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeout, because a busy machine may need longer."""
    monkeypatch.setattr(storage_error_from_readyz, "TIMEOUT_SECONDS", HANG_SECONDS)


async def test_full_disk_is_reported_until_the_store_recovers(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    async with ControlPlane.open() as plane, serve_https(plane, ensure_certificates(folder.tls)) as api:
        assert await asyncio.to_thread(find_storage_problem, folder, api) == ""
        plane.store.on_refused(StorageFull("the disk is full; free some space"))
        assert await asyncio.to_thread(find_storage_problem, folder, api) == "the disk is full; free some space"
        plane.store.on_recovered()
        assert await asyncio.to_thread(find_storage_problem, folder, api) == ""
    assert find_storage_problem(folder, api) == "", "nobody listens any more"


@pytest.mark.parametrize("command", [sandbox, cli], ids=["sandbox", "demo"])
async def test_status_shows_why_the_store_is_read_only_in_json_and_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: ModuleType
) -> None:
    folder = DataFolder(tmp_path / "data")

    async def status(output: str) -> str:
        chosen = argparse.Namespace(data_dir=folder.root, output=output)
        assert await asyncio.to_thread(command.run_status, chosen) in (0, 1)
        return capsys.readouterr().out

    async def read_only() -> str | None:
        reason: str | None = json.loads(await status("json"))["readOnly"]
        return reason

    assert await read_only() is None, "it does not run"
    async with ControlPlane.open() as plane, serve_https(plane, ensure_certificates(folder.tls)) as api:
        name = DEMO_NAME if command is cli else DEFAULT_NAME
        repository = next(example.repository for example in EXAMPLES.values() if not example.has_failure_drills)
        run = RunningInstance(os.getpid(), api, "", str(folder.root), name=name, repository=repository)
        monkeypatch.setattr(DataFolder, "find_running_instance", lambda self: run)
        assert await read_only() is None and "read-only" not in await status("table")
        plane.store.on_refused(StorageFull("the disk is full; free some space"))
        assert await read_only() == "the disk is full; free some space"
        assert "read-only  the disk is full; free some space\n" in await status("table")
