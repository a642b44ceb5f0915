"""An engine at work: the embedded cluster, a real Git repository, and applications that deliver from it.

In: a folder. Out: a Room to push to and to look into. Never: a mock of a cluster.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.apiserver.embedded import EmbeddedCluster
from argosy.apiserver.plane import Folder, Plane
from argosy.app.engine import Engine, EngineOptions
from argosy.cluster import Cluster, PatchKind
from argosy.model.manifest import Manifest, dump, key_of
from argosy.model.names import ResourceKey
from argosy.schema.definitions import definition

CONTROL = "argocd"
PATIENCE = 20.0


class Repository:
    """A repository on this machine that is written to by commits of whole texts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def push(self, files: Mapping[str, str | Manifest | None], message: str = "a commit") -> str:
        """None removes a file."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else dump(content))
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        who = {f"GIT_{who}_{what}": "ann@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {**{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}, **who}
        env["GIT_CONFIG_GLOBAL"] = os.devnull
        done = subprocess.run(["git", "-C", str(self.path), *arguments], env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()


@dataclass
class Room:
    cluster: Cluster
    repository: Repository
    engine: Engine

    async def get(self, kind: str, name: str, namespace: str = "ml") -> Manifest | None:
        group, _, plain = kind.rpartition("/")
        return await self.cluster.get(ResourceKey(group, plain, namespace, name))

    async def app(self, name: str = "models") -> Manifest:
        found = await self.get("argoproj.io/Application", name, CONTROL)
        assert found is not None
        return found

    async def deliver(self, name: str = "models", path: str = "app", **spec: Any) -> Manifest:
        """An Application of the repository's folder, in namespace ml."""
        return await self.cluster.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {"name": name, "namespace": CONTROL, **spec.pop("metadata", {})},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": self.repository.url, "path": path, "targetRevision": "main"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
                    **spec,
                },
            }
        )

    async def patch_app(self, patch: Any, name: str = "models") -> Manifest:
        key = ResourceKey("argoproj.io", "Application", CONTROL, name)
        return await self.cluster.patch(key, patch, kind_of_patch=PatchKind.MERGE)

    async def sync(self, name: str = "models", **sync: Any) -> None:
        await self.patch_app({"operation": {"sync": sync, "initiatedBy": {"username": "ann"}}}, name)

    async def until(self, holds: Callable[[dict[str, Any]], Any], name: str = "models") -> dict[str, Any]:
        """The Application, as soon as something is true of its status."""
        app: dict[str, Any] = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    app = await self.app(name)
                    if "status" in app and holds(app["status"]):
                        return app
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came true; the status is\n{dump(app.get('status') or {})}") from None

    async def until_synced(self, revision: str = "", name: str = "models") -> dict[str, Any]:
        wanted = revision or self.repository.head

        def holds(status: dict[str, Any]) -> bool:
            sync, state = status.get("sync") or {}, status.get("operationState") or {}
            return (
                sync.get("status") == "Synced"
                and sync.get("revision") == wanted
                and state.get("phase", "Succeeded") in ("Succeeded", "Failed", "Error")
            )

        return await self.until(holds, name)

    async def until_over(self, name: str = "models") -> dict[str, Any]:
        """The Application when its operation has come to an end."""
        for _ in range(int(PATIENCE / 0.02)):
            app = await self.app(name)
            state = (app.get("status") or {}).get("operationState") or {}
            if "operation" not in app and state.get("phase") in ("Succeeded", "Failed", "Error"):
                return app
            await asyncio.sleep(0.02)
        raise AssertionError(f"it never ended; the status is\n{dump(app.get('status') or {})}")


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Cluster]:
    place = Folder(folder / "argosy.db", folder / "secret.key", folder / "token.key")
    async with Plane.open(place) as plane:
        yield EmbeddedCluster(plane)


@asynccontextmanager
async def engine_room(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[Room]:
    async with embedded(folder) as cluster:
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            await cluster.create(definition(name))
        for namespace in (CONTROL, "ml"):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        ours = {"source.local.roots": str(folder)}
        for name, data in (("argosy-cm", ours), ("argocd-cm", dict(settings or {}))):
            metadata = {"name": name, "namespace": CONTROL}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        engine = Engine(cluster, EngineOptions(folder / "mirrors", wave_delay=0.0), CONTROL)
        work = asyncio.create_task(engine.run())
        try:
            yield Room(cluster, Repository(folder / "repository"), engine)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def config_map(name: str = "settings", **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


__all__ = ["CONTROL", "Repository", "Room", "config_map", "embedded", "engine_room", "key_of"]
