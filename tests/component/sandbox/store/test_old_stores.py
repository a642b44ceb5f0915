"""Stores written by older commits, recorded by tools/record_old_stores.py, can be opened by the current code."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import apsw
import pytest

from argosy.errors import UserError
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlaneFiles
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.store.sqlite_setup import APPLICATION_ID, SCHEMA_VERSION
from support.paths import DATA

pytestmark = pytest.mark.anyio
RECORDS = sorted((DATA / "old-stores").glob("*.json"))


def restored(record: Path, folder: Path) -> ControlPlaneFiles:
    recording = json.loads(record.read_text())
    connection = apsw.Connection(str(folder / "argosy.db"))
    connection.execute("\n".join(recording["sql"]))
    connection.close()
    (folder / "argosy.db").chmod(0o600)
    key = folder / "secret.key"
    key.write_bytes(base64.b64decode(recording["secret.key"]))
    key.chmod(0o600)
    return ControlPlaneFiles(folder / "argosy.db", key, folder / "token.key")


@pytest.mark.parametrize("record", RECORDS, ids=[record.stem for record in RECORDS])
async def test_objects_of_an_old_store_can_be_read_and_changed(record: Path, tmp_path: Path) -> None:
    files = restored(record, tmp_path)
    settings = ResourceKey("", "ConfigMap", "default", "settings")
    async with EmbeddedCluster.open(files) as cluster:
        assert (await cluster.get(settings) or {})["data"] == {"a": "größe", "b": "2"}
        secret = await cluster.get(ResourceKey("", "Secret", "default", "password"))
        assert secret is not None and base64.b64decode(secret["data"]["word"]) == b"hunter2"
        model = ResourceKey("example.com", "Model", "default", "bert")
        assert (await cluster.get(model) or {})["spec"] == {"name": "bert"}
        deployment = await cluster.get(ResourceKey("apps", "Deployment", "default", "web"))
        assert deployment is not None and deployment["spec"]["replicas"] == 2
        assert await cluster.get(ResourceKey("", "ConfigMap", "default", "gone")) is None
        for key in (settings, model, ResourceKey("", "Secret", "default", "password")):
            await cluster.patch(key, {"metadata": {"labels": {"seen": "again"}}})
    async with EmbeddedCluster.open(files) as cluster:
        listing = await cluster.list(GroupKind("example.com", "Model"), labels="seen=again")
        assert [listed_model["spec"]["name"] for listed_model in listing.items] == ["bert"]


def test_current_store_format_has_a_recording() -> None:
    """A change of the format needs a recorded store of the previous format, and a migration from it."""
    formats = {line for record in RECORDS for line in json.loads(record.read_text())["sql"] if "user_version" in line}
    assert f"pragma user_version={SCHEMA_VERSION};" in formats


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (SCHEMA_VERSION + 1, f"was written by a newer argosy (format {SCHEMA_VERSION + 1}, not {SCHEMA_VERSION})"),
        (0, "has format 0, which this argosy cannot upgrade; open it with the argosy that wrote it, or remove"),
    ],
)
async def test_store_of_another_format_is_refused_and_left_unchanged(tmp_path: Path, version: int, words: str) -> None:
    files = restored(RECORDS[0], tmp_path)
    connection = apsw.Connection(str(files.database))
    connection.pragma("user_version", version)
    connection.close()
    with pytest.raises(UserError) as refused:
        async with EmbeddedCluster.open(files):
            pass
    assert words in str(refused.value)
    connection = apsw.Connection(str(files.database))
    assert (connection.pragma("application_id"), connection.pragma("user_version")) == (APPLICATION_ID, version)
    assert connection.execute("SELECT count(*) FROM history").get > 5
    connection.close()
