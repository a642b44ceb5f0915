"""An installation on a real socket: an embedded cluster, a cluster view, and users with permissions.

In: a folder. Out: a World that serves HTTP. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.cluster_view.cluster_view import ClusterView, open_cluster_view
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Repository, _ensure, embedded, furnish, shared_crew
from support.page_site import Answered, Client, KnownPeople, anything, nothing, on_a_socket

KINDS = (
    "applicationsets.argoproj.io",
    "inferenceservices.serving.kserve.io",
    "notebookvalidationjobs.mlops.mlops.dev",
)
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'


def of_team(resource: str, action: str, thing: str) -> bool:
    """Allow everything in the project `team`, and nothing else."""
    return thing == "team" or thing.startswith("team/")


def reading(resource: str, action: str, thing: str) -> bool:
    return action == "get"


PEOPLE: dict[str, Callable[[str, str, str], bool]] = {"ann": anything, "bob": nothing, "cid": of_team, "dan": reading}


@dataclass
class World:
    cluster: Cluster
    lookout: ClusterView
    repository: Repository
    client: Client
    site: Site
    entry: Any

    async def ask(self, who: str, method: str, path: str, document: Any = None) -> Answered:
        return await asyncio.to_thread(self.client.bearer, who, method, path, document)

    async def raw(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answered:
        header_map = {name.replace("_", "-"): text for name, text in headers.items()}
        return await asyncio.to_thread(self.client.ask, method, path, body or None, header_map)

    async def get(self, who: str, path: str) -> Any:
        got = await self.ask(who, "GET", path)
        assert got.code == 200, (path, got.code, got.body[:500])
        return got.json()

    async def make(self, kind: str, name: str, namespace: str = CONTROL, api: str = "v1", **more: Any) -> Manifest:
        metadata = {"name": name, "namespace": namespace, **more.pop("metadata", {})}
        return await self.cluster.create({"apiVersion": api, "kind": kind, "metadata": metadata, **more})

    async def application(self, name: str, project: str = "default", **metadata: Any) -> Manifest:
        spec = {
            "project": project,
            "source": {"repoURL": self.repository.url, "path": "app", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
        }
        return await self.make("Application", name, api="argoproj.io/v1alpha1", spec=spec, metadata=metadata)

    async def add_applications(self, *names: str, project: str = "default") -> None:
        """Create Applications, and wait until the cluster view contains them."""
        for name in names:
            await self.application(name, project)
        for name in names:
            await self.seen("argoproj.io", "Application", name)

    async def seen(self, group: str, kind: str, name: str, namespace: str = CONTROL) -> None:
        """Wait until the cluster view contains this object."""
        key = ResourceKey(group, kind, namespace, name)
        async with asyncio.timeout(HANG_SECONDS):
            while self.lookout.cache.get(key) is None:
                await asyncio.sleep(0.01)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_SECONDS):
            while not holds():
                await asyncio.sleep(0.01)


async def code(world: World, who: str, method: str, where: str, document: Any = None) -> tuple[int, str]:
    """Send a request; return the status code and the message of the response."""
    got = await world.ask(who, method, where, document)
    return got.code, got.json().get("message", "")


async def denied(world: World, who: str, method: str, where: str, document: Any = None) -> None:
    got = await world.ask(who, method, where, document)
    assert (got.code, got.body) == (403, DENIED), (who, method, where, got.code, got.body[:300])


async def denied_by_name(world: World, who: str, method: str, where: str, document: Any = None) -> str:
    """The request is refused, and the message names the permission, which is returned."""
    got = await world.ask(who, method, where, document)
    message: str = got.json()["message"]
    assert (got.code, message.partition(": ")[0]) == (403, "permission denied"), (who, method, where, got.body[:300])
    return message.partition(": ")[2]


async def secrets_of(world: World, kind: str) -> list[Manifest]:
    label = f"argocd.argoproj.io/secret-type={kind}"
    return list((await world.cluster.list(GroupKind("", "Secret"), namespace=CONTROL, labels=label)).items)


def value(secret: Manifest, key: str) -> str:
    return base64.b64decode((secret.get("data") or {}).get(key, "")).decode()


def path(text: str) -> str:
    """Quote a text as one path segment."""
    return quote(text, safe="")


Whom = Callable[[Cluster, ClusterView], Any]


@contextlib.asynccontextmanager
async def rest_world(
    folder: Path, whom: Whom = lambda *_: KnownPeople(dict(PEOPLE)), *, rbac: bool = False
) -> AsyncIterator[World]:
    """Serve the REST API. `whom` creates the authenticator. `rbac`: the cluster enforces RBAC."""
    async with embedded(folder, rbac=rbac) as cluster:
        await furnish(cluster, CONTROL, "ml")
        for name in KINDS:
            await _ensure(cluster, load_definition(name))
        for name, data in (("argosy-cm", {"source.local.roots": str(folder)}), ("argocd-cm", {})):
            metadata = {"name": name, "namespace": CONTROL}
            await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        desk = ApplicationService(cluster, "the embedded cluster", CONTROL, CONTROL)
        repositories = Repositories(folder / "mirrors", SourceSettings())
        async with open_cluster_view(desk, repositories, shared_crew()) as lookout:
            site = Site(desk, lookout, whom(cluster, lookout), None, ServeOptions(version="1.2.3"))
            async with on_a_socket(site) as (client, entry):
                yield World(cluster, lookout, Repository(folder / "repository"), client, site, entry)
        repositories.close()
