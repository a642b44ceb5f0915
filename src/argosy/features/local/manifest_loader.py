"""`sandbox load`: applies manifests to the running sandbox in dependency order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.data_folder import DataFolder, Run
from argosy.cli.running_instances import administrator, running
from argosy.errors import ClusterError, UserError
from argosy.kube.objects import Manifest, key_of, read_manifests

if TYPE_CHECKING:
    from argosy.kube.client.http import KubeCluster

MANAGER = "argosy-sandbox"
STDIN = Path("-")
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
SUFFIXES = (".yaml", ".yml", ".json")
# Kinds that others depend on come first; the rest keeps the order of the files.
FIRST = {"Namespace": 0, "CustomResourceDefinition": 1, "PriorityClass": 2, "StorageClass": 2, "ServiceAccount": 3}
SERVED_SECONDS = 10.0


def load_manifests(folder: DataFolder, sources: list[Path]) -> Iterator[str]:
    """Apply the manifests and yield a line for each. All files are read before the first write."""
    run = running(folder)
    found = [manifest for source in sources for file in _files(source) for manifest in _read(file)]
    if not found:
        raise UserError("no manifests found; pass a file or folder with YAML or JSON", where=str(sources[0]))
    ordered = sorted(found, key=lambda manifest: FIRST.get(manifest["kind"], 9))
    with asyncio.Runner() as runner:
        loader = runner.run(_Loader.open(folder, run))
        try:
            for manifest in ordered:
                yield runner.run(loader.apply(manifest))
        finally:
            runner.run(loader.close())


def _files(source: Path) -> list[Path]:
    if source == STDIN:
        return [source]
    if source.is_dir():
        if found := [name for name in KUSTOMIZATIONS if (source / name).exists()]:
            message = "this folder is a kustomization, which load does not render; use: kubectl apply -k " + str(source)
            raise UserError(message, where=str(source / found[0]))
        return sorted(file for file in source.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not source.exists():
        raise UserError("does not exist; pass a file or folder with YAML or JSON", where=str(source))
    return [source]


def _read(file: Path) -> list[Manifest]:
    try:
        text = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
        found = read_manifests(text, where="standard input" if file == STDIN else str(file))
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the file", where=str(file)) from error
    for manifest in found:
        if not manifest["metadata"].get("name"):
            message = f"a {manifest['kind']} has only a generateName; add a name, or use kubectl create"
            raise UserError(message, where=str(file))
    return found


class _Loader:
    def __init__(self, cluster: KubeCluster) -> None:
        self._cluster = cluster

    @classmethod
    async def open(cls, folder: DataFolder, run: Run) -> _Loader:
        from argosy.kube.client.http import connect

        return cls(await connect(administrator(folder, run)))

    async def apply(self, manifest: Manifest) -> str:
        kinds = await self._cluster.kinds()
        key = key_of(manifest)
        info = kinds.get(key.group_kind)
        if info is not None and info.namespaced and not key.namespace:
            manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
        before = await self._before(manifest)
        after = await self._cluster.apply(manifest, manager=MANAGER, force=True)
        if key.kind == "CustomResourceDefinition":
            await self._established(manifest)
        version = after["metadata"]["resourceVersion"]
        done = "created" if before is None else "unchanged" if before == version else "configured"
        group = f".{key.group}" if key.group else ""
        return f"{key.kind.lower()}{group}/{key.name} {done}"

    async def _before(self, manifest: Manifest) -> str | None:
        found = await self._cluster.get(key_of(manifest))
        return found["metadata"]["resourceVersion"] if found else None

    async def _established(self, definition: Manifest) -> None:
        """Wait until the CRD is established, because its objects may follow in the same folder."""
        deadline = asyncio.get_running_loop().time() + SERVED_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            found = await self._cluster.get(key_of(definition))
            conditions = ((found or {}).get("status") or {}).get("conditions") or []
            if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                return
            await asyncio.sleep(0.02)
        message = "was not established in time; see its status with kubectl describe"
        raise ClusterError(message, code=504, key=key_of(definition))

    async def close(self) -> None:
        await self._cluster.close()
