"""Writes stores of the sandbox by older commits, and keeps them as SQL.

They are for tests/component/sandbox/store/test_old_stores.py.

In: commits (default: COMMITS). Out: tests/data/old-stores/COMMIT.json: the dump, and the key of its Secrets.
Development only. Run before the format of the store changes: python tools/record_old_stores.py COMMIT
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import apsw
import apsw.shell

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "tests" / "data" / "old-stores"
COMMITS = ("4f81d8f8", "0a9ffd50", "560b1f85")  # the first whole one of the sandbox, a later one, and format 2

# Runs by the old code, so it uses only what was there from the beginning.
WRITER = """
import asyncio, sys
from pathlib import Path
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.control_plane import ControlPlaneFiles
from argosy.kube.resource_key import ResourceKey

def metadata(name, **more):
    return {"name": name, "namespace": "default", **more}

LABELS = {"app": "web"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "example:1"}]}}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"name": {"type": "string"}}}}}
NAMES = {"kind": "Model", "plural": "models", "singular": "model", "listKind": "ModelList"}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
MANIFESTS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings", labels=LABELS), "data": {"a": "größe"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("password"), "stringData": {"word": "hunter2"}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web"),
     "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": POD}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("robot")},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata("reader"),
     "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]},
    {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
     "metadata": {"name": "models.example.com"},
     "spec": {"group": "example.com", "names": NAMES, "scope": "Namespaced", "versions": [VERSION]}},
]
MODEL = {"apiVersion": "example.com/v1", "kind": "Model", "metadata": metadata("bert"), "spec": {"name": "bert"}}

async def main(folder):
    place = ControlPlaneFiles(folder / "state.db", folder / "secret.key", folder / "token.key")
    async with EmbeddedCluster.open(place) as cluster:
        for manifest in MANIFESTS:
            await cluster.create(manifest)
        settings, gone = (ResourceKey("", "ConfigMap", "default", name) for name in ("settings", "gone"))
        await cluster.patch(settings, {"data": {"b": "2"}})
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("gone")})
        await cluster.delete(gone)
        for _ in range(100):
            try:
                await cluster.create(MODEL)
                break
            except Exception:  # the definition is not served yet
                await asyncio.sleep(0.1)

asyncio.run(main(Path(sys.argv[1])))
"""


def dump(database: Path) -> list[str]:
    """Every row, and the marks of the file that its reader looks at, which are part of the dump."""
    connection = apsw.Connection(str(database))
    connection.pragma("wal_checkpoint", "TRUNCATE")
    out = io.StringIO()
    apsw.shell.Shell(db=connection, stdout=out).process_command(".dump")
    return [line for line in out.getvalue().splitlines() if line and not line.startswith("--")]


def record(commit: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, folder = Path(name) / "source", Path(name) / "store"
        folder.mkdir(mode=0o700)
        packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(source, filter="data")
        env = {**os.environ, "PYTHONPATH": str(source / "src")}
        subprocess.run([sys.executable, "-P", "-c", WRITER, str(folder)], env=env, check=True)
        key = base64.b64encode((folder / "secret.key").read_bytes()).decode()
        store_record = {"commit": commit, "secret.key": key, "sql": dump(folder / "state.db")}
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"{commit}.json").write_text(json.dumps(store_record, indent=1) + "\n")


if __name__ == "__main__":
    for commit in sys.argv[1:] or COMMITS:
        record(commit)
