"""Secrets in Git that the API server rejects: the sync fails without quoting their values."""

from __future__ import annotations

import json

import pytest

from support.engine import Room

pytestmark = pytest.mark.anyio


async def test_rejected_secret_is_not_quoted_in_the_operation(room: Room) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": {"password": "aHVzaA=="}}
    room.repository.push({"app/login.yaml": secret})
    await room.deliver()
    await room.sync()
    await room.until_synced()
    room.repository.push({"app/login.yaml": {**secret, "data": {"password": 8765432}, "stringData": {"a": "hushed"}}})
    await room.annotate(refresh="hard")
    await room.sync()
    state = (await room.until_over())["status"]["operationState"]
    assert state["phase"] == "Failed" and "patch: Invalid value: cannot restore slice from int64" in state["message"]
    assert "8765432" not in json.dumps(state) and "hushed" not in json.dumps(state)
