"""`sandbox load`: applies manifests to the running sandbox in dependency order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.running_sandbox_selection import build_admin_connection, require_running_instance
from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance
from argosy.errors import ClusterError, UserError
from argosy.kube.objects import Manifest, key_of, read_manifests

if TYPE_CHECKING:
    from argosy.kube.client.cluster_client import KubeCluster

FIELD_MANAGER = "argosy-sandbox"
STDIN_PATH = Path("-")
KUSTOMIZATION_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
SUFFIXES = (".yaml", ".yml", ".json")
# Kinds that others depend on come first; the rest keeps the order of the files.
KIND_ORDER = {"Namespace": 0, "CustomResourceDefinition": 1, "PriorityClass": 2, "StorageClass": 2, "ServiceAccount": 3}
CRD_TIMEOUT_SECONDS = 10.0


def apply_manifest_files(folder: DataFolder, sources: list[Path]) -> Iterator[str]:
    """Apply the manifests and yield a line for each. All files are read before the first write."""
    run = require_running_instance(folder)
    manifests = [manifest for source in sources for file in _list_files(source) for manifest in _read_file(file)]
    if not manifests:
        raise UserError("no manifests found; pass a file or folder with YAML or JSON", where=str(sources[0]))
    ordered = sorted(manifests, key=lambda manifest: KIND_ORDER.get(manifest["kind"], 9))
    with asyncio.Runner() as runner:
        loader = runner.run(_ManifestLoader.open(folder, run))
        try:
            for manifest in ordered:
                yield runner.run(loader.apply(manifest))
        finally:
            runner.run(loader.close())


def _list_files(source: Path) -> list[Path]:
    if source == STDIN_PATH:
        return [source]
    if source.is_dir():
        if kustomization_names := [name for name in KUSTOMIZATION_NAMES if (source / name).exists()]:
            message = "this folder is a kustomization, which load does not render; use: kubectl apply -k " + str(source)
            raise UserError(message, where=str(source / kustomization_names[0]))
        return sorted(file for file in source.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not source.exists():
        raise UserError("does not exist; pass a file or folder with YAML or JSON", where=str(source))
    return [source]


def _read_file(file: Path) -> list[Manifest]:
    try:
        text = sys.stdin.buffer.read() if file == STDIN_PATH else file.read_bytes()
        manifests = read_manifests(text, where="standard input" if file == STDIN_PATH else str(file))
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    for manifest in manifests:
        if not manifest["metadata"].get("name"):
            message = f"a {manifest['kind']} has only a generateName; add a name, or use kubectl create"
            raise UserError(message, where=str(file))
    return manifests


class _ManifestLoader:
    def __init__(self, cluster: KubeCluster) -> None:
        self._cluster = cluster

    @classmethod
    async def open(cls, folder: DataFolder, run: RunningInstance) -> _ManifestLoader:
        from argosy.kube.client.cluster_client import connect

        return cls(await connect(build_admin_connection(folder, run)))

    async def apply(self, manifest: Manifest) -> str:
        kinds = await self._cluster.kinds()
        key = key_of(manifest)
        info = kinds.get(key.group_kind)
        if info is not None and info.namespaced and not key.namespace:
            manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
        old_version = await self._read_live_version(manifest)
        after = await self._cluster.apply(manifest, manager=FIELD_MANAGER, force=True)
        if key.kind == "CustomResourceDefinition":
            await self._wait_until_established(manifest)
        version = after["metadata"]["resourceVersion"]
        outcome = "created" if old_version is None else "unchanged" if old_version == version else "configured"
        group = f".{key.group}" if key.group else ""
        return f"{key.kind.lower()}{group}/{key.name} {outcome}"

    async def _read_live_version(self, manifest: Manifest) -> str | None:
        live = await self._cluster.get(key_of(manifest))
        return live["metadata"]["resourceVersion"] if live else None

    async def _wait_until_established(self, definition: Manifest) -> None:
        """Wait until the CRD is established, because its objects may follow in the same folder."""
        deadline = asyncio.get_running_loop().time() + CRD_TIMEOUT_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            live = await self._cluster.get(key_of(definition))
            conditions = ((live or {}).get("status") or {}).get("conditions") or []
            if any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions):
                return
            await asyncio.sleep(0.02)
        message = "was not established in time; see its status with kubectl describe"
        raise ClusterError(message, code=504, key=key_of(definition))

    async def close(self) -> None:
        await self._cluster.close()
