"""A missing `secret.key`: a store created with a key never gets a new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles


def folder_in(root: Path) -> ControlPlaneFiles:
    return ControlPlaneFiles(root / "argosy.db", root / "secret.key", root / "token.key")


async def refuse_without_key(folder: ControlPlaneFiles) -> str:
    folder.secret_key.unlink()
    before = {file.name: file.read_bytes() for file in folder.database.parent.iterdir()}
    with pytest.raises(UserError) as refused:
        async with ControlPlane.open(folder):
            pass
    assert {file.name: file.read_bytes() for file in folder.database.parent.iterdir()} == before
    return str(refused.value)


@pytest.mark.parametrize("lost_as_well", ["argosy.db.lock", "argosy.db.initialized", "argosy.db"])
async def test_missing_key_of_a_stopped_store_is_not_replaced(tmp_path: Path, lost_as_well: str) -> None:
    folder = folder_in(tmp_path)
    async with ControlPlane.open(folder):
        key = folder.secret_key.read_bytes()
    (tmp_path / lost_as_well).unlink()
    refusal = await refuse_without_key(folder)
    assert refusal.startswith(f"{folder.secret_key}: is missing; restore it (it was created with this store)")
    assert f"argosy sandbox reset --data-dir {tmp_path}" in refusal
    if lost_as_well != "argosy.db":
        folder.secret_key.write_bytes(key)
        folder.secret_key.chmod(0o600)
        async with ControlPlane.open(folder):
            pass


async def test_missing_key_of_a_killed_store_is_not_replaced(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "killed")
    for name in ("open", "killed"):
        (tmp_path / name).mkdir(mode=0o700)
    async with ControlPlane.open(folder_in(tmp_path / "open")):
        for name in ("argosy.db", "argosy.db-wal", "secret.key"):
            shutil.copy(tmp_path / "open" / name, folder.database.parent / name)
    assert "is missing; restore it" in await refuse_without_key(folder)


async def test_first_start_creates_a_key_if_only_an_empty_database_exists(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.database.touch(mode=0o600)
    async with ControlPlane.open(folder):
        assert len(folder.secret_key.read_bytes()) == 32


@pytest.mark.parametrize("lose", [Path.unlink, lambda file: os.truncate(file, 0)], ids=["missing", "empty"])
async def test_lost_service_account_key_is_regenerated(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    """Old tokens become invalid, and nothing on disk depends on the key."""
    folder = folder_in(tmp_path)
    async with ControlPlane.open(folder) as plane:
        before = plane.tokens.build_jwks()
    lose(folder.token_key)
    async with ControlPlane.open(folder) as plane:
        assert plane.tokens.build_jwks() != before
