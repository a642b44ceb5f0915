"""A running engine with a cluster, a real Git repository, and Applications that deliver from it.

In: a folder. Out: a Room to push to and to inspect. Never: mocks a cluster.
The cluster is embedded (in this process), wire (KubeCluster, TLS on loopback, the embedded server) or real
(KubeCluster, a private API server that is wiped for each room).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from argosy.errors import Conflict
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.controller.clock import SystemClock
from argosy.kube.controller.sharding.membership import ShardMembership
from argosy.kube.objects import Manifest, dump_yaml, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from argosy.sandbox.apiserver.https_server import serve_https
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.tls import ensure_certificates
from support.deadlines import HANG_SECONDS
from support.real_server import WipedServer

CONTROL = "argocd"
APPLICATION, PROJECT = GroupKind("argoproj.io", "Application"), GroupKind("argoproj.io", "AppProject")
TOKEN = "admin-of-a-test"


class LeapingClock(SystemClock):
    """The system clock plus offsets that a test adds: timers that become due fire at once."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._set_by = 0.0
        self._timers: list[_Timer] = []

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead + self._set_by)

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    def call_later(self, seconds: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self.monotonic() + seconds, callback)
        timer.handle = asyncio.get_running_loop().call_later(seconds, timer.fire)
        self._timers = [other_timer for other_timer in self._timers if not other_timer.is_over] + [timer]
        return timer

    def set_by(self, seconds: float) -> None:
        """Change only the wall clock, like NTP does; durations and timers are not affected."""
        self._set_by += seconds

    def leap(self, seconds: float) -> None:
        self._ahead += seconds
        for timer in [candidate for candidate in self._timers if candidate.due <= self.monotonic()]:
            timer.fire()


@dataclass(eq=False)
class _Timer:
    due: float
    callback: Callable[[], None]
    handle: asyncio.TimerHandle | None = None
    is_over: bool = False

    def fire(self) -> None:
        if not self.is_over:
            self.cancel()
            self.callback()

    def cancel(self) -> None:
        self.is_over = True
        if self.handle is not None:
            self.handle.cancel()


class Repository:
    """A local repository; each commit writes whole files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def push(self, files: Mapping[str, str | Manifest | None], message: str = "a commit") -> str:
        """Commit files; None removes a file."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else dump_yaml(content))
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        role = {
            f"GIT_{role}_{field}": "ann@example.com" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
        }
        env = {**{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}, **role}
        env["GIT_CONFIG_GLOBAL"] = os.devnull
        done = subprocess.run(["git", "-C", str(self.path), *arguments], env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()


@dataclass
class Room:
    cluster: Cluster
    repository: Repository
    engine: Engine
    clock: LeapingClock = field(default_factory=LeapingClock, kw_only=True)
    flavour: str = field(default="embedded", kw_only=True)

    async def get(self, kind: str, name: str, namespace: str = "ml") -> Manifest | None:
        group, _, plain = kind.rpartition("/")
        return await self.cluster.get(ResourceKey(group, plain, namespace, name))

    async def app(self, name: str = "models") -> Manifest:
        application = await self.get("argoproj.io/Application", name, CONTROL)
        assert application is not None
        return application

    async def deliver(self, name: str = "models", path: str = "app", **spec: Any) -> Manifest:
        """Create an Application of a folder of the repository, with destination namespace ml."""
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

    async def annotate(self, name: str = "models", **annotations: str | None) -> None:
        """Set annotations of argocd.argoproj.io; underscores become dashes."""
        values = {f"argocd.argoproj.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.patch_app({"metadata": {"annotations": values}}, name)

    async def configure(self, data: Mapping[str, str | None], name: str = "argocd-cm") -> None:
        key = ResourceKey("", "ConfigMap", CONTROL, name)
        await self.cluster.patch(key, {"data": dict(data)}, kind_of_patch=PatchKind.MERGE)

    async def project(self, name: str = "team", **spec: Any) -> Manifest:
        """Create an AppProject that allows everything except for these fields."""
        return await self.cluster.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "AppProject",
                "metadata": {"name": name, "namespace": CONTROL},
                "spec": {
                    "sourceRepos": ["*"],
                    "destinations": [{"server": "*", "namespace": "*"}],
                    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                    **spec,
                },
            }
        )

    async def change(self, name: str = "settings", namespace: str = "ml", **data: str) -> None:
        """Change a live object outside of Git."""
        key = ResourceKey("", "ConfigMap", namespace, name)
        await self.cluster.patch(key, {"data": data}, kind_of_patch=PatchKind.MERGE)

    async def until_condition(self, word: str, name: str = "models") -> str:
        """Wait for a condition of this type and return its message."""
        app = await self.until(lambda status: conditions(status, word), name)
        return conditions(app["status"], word)[0]

    async def until_gone(self, kind: str, name: str, namespace: str = "ml") -> None:
        async with asyncio.timeout(HANG_SECONDS):
            while await self.get(kind, name, namespace) is not None:
                await asyncio.sleep(0.02)

    async def settled(self, name: str = "models") -> dict[str, Any]:
        """The Application after a requested refresh."""
        await self.annotate(name, refresh="normal")
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                app = await self.app(name)
                if "argocd.argoproj.io/refresh" not in (app["metadata"].get("annotations") or {}):
                    return app
                await asyncio.sleep(0.02)

    async def sync(self, name: str = "models", **sync: Any) -> None:
        await self.patch_app({"operation": {"sync": sync, "initiatedBy": {"username": "ann"}}}, name)

    async def until(self, holds: Callable[[dict[str, Any]], Any], name: str = "models") -> dict[str, Any]:
        """Wait until a predicate of the status is true and return the Application; a missing field counts as false."""
        app: dict[str, Any] = {}
        try:
            async with asyncio.timeout(HANG_SECONDS):
                while True:
                    app = await self.app(name)
                    with suppress(LookupError):
                        if holds(app["status"]):
                            return app
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came true; the status is\n{dump_yaml(app.get('status') or {})}") from None

    async def until_synced(self, revision: str = "", name: str = "models") -> dict[str, Any]:
        expected = revision or self.repository.head

        def is_synced(status: dict[str, Any]) -> bool:
            sync, state = status.get("sync") or {}, status.get("operationState") or {}
            return (
                sync.get("status") == "Synced"
                and sync.get("revision") == expected
                and state.get("phase", "Succeeded") in ("Succeeded", "Failed", "Error")
            )

        return await self.until(is_synced, name)

    async def until_over(self, name: str = "models") -> dict[str, Any]:
        """The Application after its operation has ended."""
        for _ in range(int(HANG_SECONDS / 0.02)):
            app = await self.app(name)
            state = (app.get("status") or {}).get("operationState") or {}
            if "operation" not in app and state.get("phase") in ("Succeeded", "Failed", "Error"):
                return app
            await asyncio.sleep(0.02)
        raise AssertionError(f"it never ended; the status is\n{dump_yaml(app.get('status') or {})}")


def conditions(status: Mapping[str, Any], word: str) -> list[str]:
    return [condition["message"] for condition in status.get("conditions") or () if condition["type"] == word]


@asynccontextmanager
async def embedded(folder: Path, *, rbac: bool = False) -> AsyncIterator[Cluster]:
    files = ControlPlaneFiles(folder / "argosy.db", folder / "secret.key", folder / "token.key")
    async with ControlPlane.open(files, rbac=rbac) as plane:
        yield EmbeddedCluster(plane)


@asynccontextmanager
async def wire(folder: Path) -> AsyncIterator[Cluster]:
    certificate_files = ensure_certificates(folder)
    async with (
        ControlPlane.open(rbac=True, admin_token=TOKEN) as plane,
        serve_https(plane, certificate_files) as url,
        await connect(Connection(server=url, ca_file=str(certificate_files.authority), token=TOKEN)) as cluster,
    ):
        yield cluster


FLAVOURS = {"embedded": embedded, "wire": wire}


async def furnish(cluster: Cluster, *namespaces: str) -> None:
    """Create the CRDs and namespaces that an engine needs; on a wiped server they may still exist."""
    for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
        await _ensure(cluster, load_definition(name))
    for namespace in namespaces:
        await _ensure(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    async with asyncio.timeout(HANG_SECONDS):
        while not {APPLICATION, PROJECT} <= (await cluster.kinds()).keys():  # k8s: shortly after the CRD
            await asyncio.sleep(0.05)


async def _ensure(cluster: Cluster, manifest: Manifest) -> None:
    with suppress(Conflict):
        await cluster.create(manifest)


_OF_THREAD = threading.local()


def shared_crew() -> ProcessPool:
    """One process pool for all rooms of a thread, because a pool belongs to one event loop."""
    if not hasattr(_OF_THREAD, "crew"):
        _OF_THREAD.crew = ProcessPool(workers=1)
    crew: ProcessPool = _OF_THREAD.crew
    return crew


@asynccontextmanager
async def engine_room(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    flavour: str = "embedded",
    server: WipedServer | None = None,
    wrap_cluster: Callable[[Cluster], Cluster] = lambda cluster: cluster,
    member: str = "",
    crew: ProcessPool | None = None,
) -> AsyncIterator[Room]:
    """`wrap_cluster` wraps the engine's cluster client. `member`: its identity if sharded. `crew`: process pool for
    rendering; the caller closes it."""
    async with server.opened() if server else FLAVOURS[flavour](folder) as cluster:
        await furnish(cluster, CONTROL, "ml")
        ours = {"source.local.roots": str(folder)}
        for name, data in (("argosy-cm", ours), ("argocd-cm", dict(settings or {}))):
            metadata = {"name": name, "namespace": CONTROL}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        clock = LeapingClock()
        options = EngineOptions(folder / "mirrors", wave_delay_seconds=0.0)
        members = ShardMembership(cluster, CONTROL, identity=member) if member else None
        engine = Engine(
            wrap_cluster(cluster), options, CONTROL, clock, render_pool=crew or shared_crew(), members=members
        )
        work = asyncio.create_task(engine.run())
        try:
            yield Room(cluster, Repository(folder / "repository"), engine, clock=clock, flavour=flavour)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def config_map(name: str = "settings", **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


__all__ = [
    "CONTROL",
    "FLAVOURS",
    "LeapingClock",
    "Repository",
    "Room",
    "conditions",
    "config_map",
    "embedded",
    "engine_room",
    "furnish",
    "key_of",
    "shared_crew",
]
