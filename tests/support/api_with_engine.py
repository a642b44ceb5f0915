"""Serves the API of an embedded cluster with a running engine on a real socket.

In: a folder. Out: an ApiScene to send requests to, and a Room to push to. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.features.serve.web_application import open_web_application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.cluster_view.cluster_view import open_cluster_view
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.web.auth.login_codes import LoginCodes
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.route import Route
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map, engine_room, shared_crew
from support.page_site import Answered, Client, KnownPeople, anything, nothing, on_a_socket

AT = "/api/v1/applications"
LINES = ("listening on 8080", "loaded model", "Warning: slow")
SECRET_VALUE = "c3VwZXItc2VjcmV0LXZhbHVl"  # super-secret-value


class PrintedLines:
    """Fixed log lines for every Pod."""

    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        for line in LINES[-tail:] if tail else LINES:
            yield f"{line}\n"


@dataclass
class ApiScene:
    room: Room
    client: Client
    site: Site
    entry: WebApplication
    people: KnownPeople | None = None
    codes: LoginCodes | None = None  # with real accounts

    async def token(self) -> str:
        """Token of a new session of the admin."""
        assert self.codes is not None
        session_token: str = await self.site.authenticator.login_with_one_time_code(self.codes.create_code())  # type: ignore[attr-defined]
        return session_token

    async def ask(self, method: str, path: str, document: Any = None, who: str = "ann") -> Answered:
        where = path if path.startswith("/") else f"{AT}/{path}"
        return await asyncio.to_thread(self.client.bearer, who, method, where, document)

    async def get(self, path: str, who: str = "ann") -> Any:
        response = await self.ask("GET", path, who=who)
        assert response.code == 200, response
        return response.json()

    async def seen(self, name: str, holds: Callable[[Manifest], Any]) -> Manifest:
        """Wait until the cluster view's Application fulfils a condition, and return it."""
        key = ResourceKey("argoproj.io", "Application", CONTROL, name)
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                manifest = self.site.cluster_view.cache.get(key)
                with contextlib.suppress(LookupError, TypeError):
                    if manifest is not None and holds(manifest):
                        return manifest  # type: ignore[no-any-return]
                await asyncio.sleep(0.02)

    async def over(self, name: str) -> Manifest:
        """The Application after the requested operation has ended."""
        return await self.seen(
            name,
            lambda app: (
                "operation" not in app and app["status"]["operationState"]["phase"] in ("Succeeded", "Failed", "Error")
            ),
        )


@contextlib.asynccontextmanager
async def api_scene(
    folder: Path,
    allowed: dict[str, Callable[[str, str, str], bool]] | None = None,
    routes: Iterable[Route] | None = None,
) -> AsyncIterator[ApiScene]:
    """The test chooses the caller: ann may do everything, bob nothing."""
    async with _room(folder) as (room, repositories):
        desk = ApplicationService(room.cluster, "a test", CONTROL, CONTROL)
        people = KnownPeople({"ann": anything, "bob": nothing, **(allowed or {})})
        async with open_cluster_view(desk, repositories, shared_crew()) as lookout:
            site = Site(desk, lookout, people, None, ServeOptions(version="1.2.3"))
            async with on_a_socket(site, routes) as (client, entry):
                yield ApiScene(room, client, site, entry, people)


@contextlib.asynccontextmanager
async def real_scene(folder: Path) -> AsyncIterator[ApiScene]:
    """Uses the accounts and policies of the cluster, like `argosy serve`."""
    data_folder = folder / "own"
    data_folder.mkdir(mode=0o700)
    async with _room(folder) as (room, repositories):
        options = ServeOptions(version="1.2.3")
        async with (
            open_web_application(
                room.cluster, "a test", options, data_folder, CONTROL, repositories, shared_crew()
            ) as application,
            on_a_socket(application.site) as (client, entry),
        ):
            yield ApiScene(room, client, application.site, entry, codes=LoginCodes(data_folder))


@contextlib.asynccontextmanager
async def _room(folder: Path) -> AsyncIterator[tuple[Room, Repositories]]:
    async with engine_room(folder) as room:
        assert isinstance(room.cluster, EmbeddedCluster)
        room.cluster.plane.subresources.pod_logs = PrintedLines()
        repositories = Repositories(folder / "seen", SourceSettings())
        try:
            yield room, repositories
        finally:
            repositories.close()


def a_folder() -> dict[str, Manifest]:
    """A Deployment, a Pod, a Service, a ConfigMap and a Secret."""
    labels, image = {"app": "web"}, {"name": "main", "image": "registry.example/web:1"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [image]}}
    return {
        "app/settings.yaml": config_map(a="one"),
        "app/web.yaml": {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        },
        "app/one.yaml": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": pod["spec"]},
        "app/service.yaml": {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        },
        "app/secret.yaml": {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}, "data": {"key": SECRET_VALUE},
        },
    }  # fmt: skip


__all__ = ["AT", "CONTROL", "LINES", "SECRET_VALUE", "ApiScene", "a_folder", "api_scene", "real_scene"]
