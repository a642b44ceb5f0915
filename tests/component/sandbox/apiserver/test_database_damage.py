"""A database damaged while the server runs: objects are served from memory, old history is an InternalError."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from support.api_client import CONFIGS, TOKEN, Api, config

pytestmark = pytest.mark.anyio


async def test_watch_of_damaged_history_ends_with_an_internal_error(tmp_path: Path) -> None:
    folder = ControlPlaneFiles(tmp_path / "argosy.db", tmp_path / "secret.key", tmp_path / "token.key")
    async with ControlPlane.open(folder, admin_token=TOKEN) as plane:
        api = Api(plane)
        before = (await api.get(CONFIGS)).json["metadata"]["resourceVersion"]
        for number in range(3):
            await api.made(CONFIGS, {**config(f"c{number}"), "data": {"key": "marker" * 100}})
        await api.made(CONFIGS, config("last"))
    async with ControlPlane.open(folder, admin_token=TOKEN) as plane:  # earlier writes are read from the file
        api = Api(plane)
        with folder.database.open("r+b") as file:
            data = file.read().replace(b"marker", b"m\xffrker")
            file.seek(0)
            file.write(data)
        async with api.watch(f"{CONFIGS}?resourceVersion={before}") as watching:
            await watching.until(lambda: watching.ended)
        (event,) = watching.events
        assert event["type"] == "ERROR"
        status = event["object"]
        assert status["code"] == 500 and status["reason"] == "InternalError" and status["kind"] == "Status"
        assert f"{folder.database} is damaged (configmaps/default/c0 at revision" in status["message"]
        assert len((await api.get(CONFIGS)).json["items"]) >= 4
        assert (await api.get(f"{CONFIGS}/c0")).json["data"]["key"] == "marker" * 100
        await api.made(CONFIGS, config("more"))
