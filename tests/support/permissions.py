"""An installation with its Roles on an API server that enforces RBAC; records every Forbidden response.

In: a folder, options. Out: a Scene whose components run with their service accounts, and whose permissions can be
removed one by one. Never: mocks a cluster; runs a component with the credentials of an administrator.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from argosy.errors import ClusterError, Forbidden
from argosy.features.controller.process import _create_crds_and_namespace
from argosy.features.install.live_state import load_install_state
from argosy.features.install.manifests import build_manifests
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import build_install_plan
from argosy.features.install.plan_execution import execute_plan
from argosy.features.serve.web_server_run import WebServerOptions, serve_web
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.engine.shard_application_takeover import wait_for_no_leader
from argosy.kube.client import Cluster
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.controller.sharding.member_lease_format import build_lease_key
from argosy.kube.controller.sharding.membership import ShardMembership
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support import control_plane as realcluster
from support.clusters import served
from support.deadlines import HANG_SECONDS
from support.engine import Repository, shared_crew

HOME = "argosy"
GRACE = 0.4  # seconds in which an action can still succeed after a refused request
TOKEN = "admin-of-a-test"


class Right(NamedTuple):
    """One verb on one resource, granted by one role; `name` limits it to that object."""

    role: tuple[str, str]  # kind, name
    group: str
    resource: str
    verb: str
    name: str = ""

    @property
    def shown(self) -> str:
        resource_text = "/".join(
            part or "core" for part in (self.group, self.resource, *([self.name] if self.name else []))
        )
        return f"{self.role[1].removeprefix('argosy-')}: {self.verb} {resource_text}"


def rights_of(options: InstallOptions) -> list[Right]:
    return [
        Right((manifest["kind"], manifest["metadata"]["name"]), group, resource, verb, name)
        for manifest in build_manifests(options)
        for rule in manifest.get("rules") or ()
        for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
    ]  # fmt: skip


def rules_without(rules: list[dict[str, Any]], right: Right) -> list[dict[str, Any]]:
    """Return one rule for each permission except this one."""
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb], **({"resourceNames": [name]} if name else {})}
        for rule in rules
        for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
        if (group, resource, verb, name) != (right.group, right.resource, right.verb, right.name)
    ]  # fmt: skip


class Refused(AssertionError):
    """The action did not succeed, and the cluster refused a request."""


@dataclass
class Scene:
    admin: Cluster
    address: str
    authority: Path
    folder: Path
    repository: Repository
    options: InstallOptions
    refused: list[str] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    session: str = ""  # session token of the user admin
    settles: float = 0.0  # seconds until the API server applies a changed role
    _kept: tuple[str, httpx.AsyncClient] | None = None

    @contextlib.asynccontextmanager
    async def account(self, name: str) -> AsyncIterator[Cluster]:
        """Open a cluster client with a token of this service account, over TLS."""
        spec = {"expirationSeconds": 3600}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        key = ResourceKey("", "ServiceAccount", HOME, name)
        token = (await self.admin.create(request, subresource_of=key))["status"]["token"]
        connection = Connection(server=self.address, ca_file=str(self.authority), token=token)
        async with await connect(connection) as cluster:
            yield Noted(cluster, self.refused)  # type: ignore[misc]

    @contextlib.asynccontextmanager
    async def without(self, right: Right) -> AsyncIterator[None]:
        kind, name = right.role
        key = ResourceKey("rbac.authorization.k8s.io", kind, HOME if kind == "Role" else "", name)
        role = await self.admin.get(key)
        assert role is not None
        rules = role["rules"]
        remaining = rules_without(rules, right)
        assert len(remaining) == sum(other.role == right.role for other in rights_of(self.options)) - 1
        await self.admin.patch(key, {"rules": remaining})
        await asyncio.sleep(self.settles)
        self.refused.clear()
        try:
            yield
        finally:
            await self.admin.patch(key, {"rules": rules})
            await asyncio.sleep(self.settles)

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        """Wait for a condition. Fail early if the cluster refused a request and the condition is still not met."""
        async with asyncio.timeout(HANG_SECONDS):
            grace = None
            while True:
                if result := await holds():
                    return result
                now = asyncio.get_running_loop().time()
                grace = grace or (now + GRACE if self.refused else None)
                if grace and now > grace:
                    raise Refused(self.refused[0])
                await asyncio.sleep(0.03)

    async def get(self, kind: str, name: str, namespace: str = HOME) -> Manifest | None:
        group, _, plain = kind.rpartition("/")
        return await self.admin.get(ResourceKey(group, plain, namespace, name))

    async def put(self, manifest: Manifest) -> None:
        await self.admin.apply(manifest, manager="a-test", force=True)

    async def application(self, name: str, **spec: Any) -> None:
        await self.admin.create(application(name, self.repository.url, **spec))

    # -- components ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def standing(self) -> AsyncIterator[None]:
        """Share one controller and one server between all actions; only for actions with all permissions."""
        async with self._controller() as identity, self._server() as client:
            self._kept = identity, client
            try:
                yield
            finally:
                self._kept = None

    @contextlib.asynccontextmanager
    async def controller(self) -> AsyncIterator[str]:
        """Run a controller, or use the shared one; yield its identity."""
        if self._kept:
            yield self._kept[0]
        else:
            async with self._controller() as identity:
                yield identity

    @contextlib.asynccontextmanager
    async def server(self) -> AsyncIterator[httpx.AsyncClient]:
        """Run a server, or use the shared one; yield a client with the session token."""
        async with contextlib.AsyncExitStack() as stack:
            client = self._kept[1] if self._kept else await stack.enter_async_context(self._server())
            client.headers["Authorization"] = f"Bearer {self.session}"
            yield client

    @contextlib.asynccontextmanager
    async def _controller(self) -> AsyncIterator[str]:
        """Start a controller like `argosy controller` does; yield its identity."""
        async with self.account("argosy-controller") as cluster:
            options = EngineOptions(self.folder / "mirrors", wave_delay_seconds=0.0, grace_seconds=1.0)
            members = ShardMembership(cluster, HOME)

            async def run() -> None:
                await _create_crds_and_namespace(cluster, HOME)
                await wait_for_no_leader(cluster, HOME)
                await Engine(cluster, options, HOME, render_pool=shared_crew(), members=members).run()

            running = asyncio.create_task(run())
            try:
                yield members.identity
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await self._left(members.identity)

    async def _left(self, identity: str) -> None:
        """Delete the Lease of a stopped controller that lacks the permission, so that the next one need not wait."""
        with contextlib.suppress(ClusterError):
            await self.admin.delete(build_lease_key(HOME, identity))

    @contextlib.asynccontextmanager
    async def _server(self) -> AsyncIterator[httpx.AsyncClient]:
        """Start a server like `argosy serve` does; raise the error that prevents the start."""
        async with self.account("argosy-server") as cluster:
            options = WebServerOptions(port=0, listen="0.0.0.0", folder=self.folder / "page")
            async with serve_web(cluster, "a test", options, namespace=HOME, crew=shared_crew()) as page:
                url = f"https://127.0.0.1:{page.url.rpartition(':')[2]}"
                async with httpx.AsyncClient(base_url=url, verify=False, timeout=HANG_SECONDS) as client:
                    yield client


def application(name: str, url: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": HOME},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": name, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": f"of-{name}"},
            **spec,
        },
    }


@contextlib.asynccontextmanager
async def rights_scene(folder: Path, options: InstallOptions) -> AsyncIterator[Scene]:
    async with served(folder / "plane", rbac=True) as plane:
        admin = EmbeddedCluster(plane.plane)
        yield await _furnished(admin, plane.endpoint.address, plane.authority, folder, options)


@contextlib.asynccontextmanager
async def real_rights_scene(folder: Path, options: InstallOptions) -> AsyncIterator[Scene]:
    """Open a Scene on a real API server; skip the test if it is not built."""
    if realcluster.programs() is None:
        pytest.skip(f"a real server: it is not in {realcluster.CACHE} (make realcluster)")
    with realcluster.real_cluster() as real:
        async with await connect(load_kubeconfig([real.kubeconfig])) as admin:
            scene = await _furnished(admin, real.server, real.folder / "ca.crt", folder, options)
            scene.settles = 1.0
            yield scene


async def _furnished(admin: Cluster, address: str, authority: Path, folder: Path, options: InstallOptions) -> Scene:
    await execute_plan(
        admin, build_install_plan(options, await load_install_state(admin, options)), lambda step: None, 0.0
    )
    await admin.create(load_definition("applicationsets.argoproj.io"))
    roots = {"source.local.roots": str(folder)}
    for name, data in (("argosy-cm", roots), ("argocd-cm", {})):
        metadata = {"name": name, "namespace": HOME}
        await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    async with asyncio.timeout(HANG_SECONDS):
        while GroupKind("argoproj.io", "ApplicationSet") not in await admin.kinds():  # k8s: served soon after its CRD
            await asyncio.sleep(0.05)
    return Scene(admin, address, authority, folder, Repository(folder / "repository"), options)


class Noted:
    """A proxy of a cluster client that records every Forbidden error."""

    def __init__(self, cluster: Cluster, refused: list[str]) -> None:
        self._cluster, self._refused = cluster, refused

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._cluster, name)
        if inspect.iscoroutinefunction(attribute):
            return partial(self._called, attribute)
        return partial(self._watched, attribute) if name == "watch" else attribute

    async def _called(self, call: Callable[..., Awaitable[Any]], *words: Any, **options: Any) -> Any:
        try:
            return await call(*words, **options)
        except Forbidden as error:
            self._refused.append(str(error))
            raise

    async def _watched(self, watch: Any, *words: Any, **options: Any) -> AsyncIterator[Any]:
        try:
            async for event in watch(*words, **options):
                yield event
        except Forbidden as error:
            self._refused.append(str(error))
            raise


__all__ = ["HOME", "Refused", "Right", "Scene", "application", "key_of", "real_rights_scene", "rights_of",
           "rights_scene"]  # fmt: skip
