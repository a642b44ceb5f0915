"""The cluster, its simulators, and an engine if an Application is delivered.

In: a folder. Out: a Stage. Never: starts an engine or a server before it is used.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from argosy.cli.sandbox_data_folder_and_lock import write_private_text
from argosy.errors import Conflict, UserError
from argosy.features.local_sandbox import kubeconfig
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.application_client.control_namespace import DEFAULT_NAMESPACE
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.workspace.checked_out_head import read_head
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.controller.addon_loader import load_addons, run_addons
from argosy.kube.objects import Manifest, dump_yaml, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.kube.well_known_kinds import NAMESPACE
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.https_server import serve_https
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.tls import ensure_certificates
from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN

ADDONS: Final = "simulators"
MANAGER: Final = "argosy-rehearsal"
NAME: Final = "argosy-test"
KINDS: Final = ("applications.argoproj.io", "appprojects.argoproj.io", "applicationsets.argoproj.io")
SERVED_SECONDS: Final = 10.0
UNCOMMITTED_REVISION: Final = "working-tree"  # the revision of uncommitted files


@dataclass
class Stage:
    """An open cluster; closing `end` stops everything that was started meanwhile."""

    cluster: EmbeddedCluster
    folder: Path
    token: str
    end: contextlib.AsyncExitStack
    crew: ProcessPool
    homes: dict[str, Path] = field(default_factory=dict)  # repository URL → local folder that replaces it
    _api: str = ""
    _is_delivering: bool = False

    @cached_property
    def _trees(self) -> WorkingTrees:
        return WorkingTrees(self.folder / "mirrors", self.homes)

    async def apply(self, manifests: Sequence[Manifest], namespace: str) -> list[Manifest]:
        """Apply in dependency order, and create missing namespaces."""
        from argosy.features.local_sandbox.sandbox_manifest_apply import KIND_ORDER

        live_objects = []
        for manifest in sorted(manifests, key=lambda item: KIND_ORDER.get(item["kind"], 9)):
            namespaced = await self._set_namespace(manifest, namespace)
            await self._ensure_namespace(key_of(namespaced).namespace)
            live_objects.append(await self.cluster.apply(namespaced, manager=MANAGER, force=True))
            if namespaced["kind"] == "CustomResourceDefinition":
                await self._wait_until_served(namespaced)
        return live_objects

    async def _set_namespace(self, manifest: Manifest, namespace: str) -> Manifest:
        key = key_of(manifest)
        info = (await self.cluster.kinds()).get(key.group_kind)
        if info is None:
            message = f"this cluster does not know the kind of {key.kind}/{key.name}; apply its definition first"
            raise UserError(message, where=str(manifest.get("apiVersion")))
        if key.namespace or not info.namespaced:
            return manifest
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}

    async def _ensure_namespace(self, name: str) -> None:
        if name and await self.cluster.get(ResourceKey(*NAMESPACE, "", name)) is None:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            with contextlib.suppress(Conflict):
                await self.cluster.create(manifest)

    async def _wait_until_served(self, definition: Manifest) -> None:
        spec = definition["spec"]
        kind = GroupKind(spec["group"], spec["names"]["kind"])
        async with asyncio.timeout(SERVED_SECONDS):
            while kind not in await self.cluster.kinds():  # noqa: ASYNC110 - discovery has no watch
                await asyncio.sleep(0.01)

    async def serve(self) -> Path:
        """Return a kubeconfig for other programs. The server starts with the first call."""
        file = self.folder / "kubeconfig"
        if not self._api:
            certificates = await asyncio.to_thread(ensure_certificates, self.folder / "tls")
            self._api = await self.end.enter_async_context(serve_https(self.cluster.plane, certificates))
            authority = certificates.authority.read_bytes()
            write_private_text(
                file, dump_yaml(kubeconfig.build_kubeconfig(NAME, self._api, authority, ADMIN.name, self.token))
            )
        return file

    async def deliver(self, application: Manifest, homes: Mapping[str, Path]) -> Manifest:
        """Create or replace the Application and request one sync. Its sources are these folders as they are."""
        self.homes |= homes
        self._trees.looks += 1
        await self._start_engine()
        desired = {**application, "metadata": {**application["metadata"], "namespace": DEFAULT_NAMESPACE}}
        await self._ensure_namespace(str(_find_map(desired, "spec", "destination").get("namespace") or ""))
        await self._create_or_replace(desired)
        options = _find_map(desired, "spec", "syncPolicy").get("syncOptions") or []
        request = {"sync": {"syncOptions": options}, "initiatedBy": {"username": MANAGER}}
        return await self.cluster.patch(key_of(desired), {"operation": request})

    async def _create_or_replace(self, manifest: Manifest) -> None:
        """Unknown fields are dropped, as by kubectl."""
        live = await self.cluster.get(key_of(manifest))
        if live is None:
            await self.cluster.create(manifest)
        else:
            metadata = {**manifest["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
            await self.cluster.replace({**live, **manifest, "metadata": metadata})

    async def _start_engine(self) -> None:
        if self._is_delivering:
            return
        self._is_delivering = True
        await self._ensure_namespace(DEFAULT_NAMESPACE)
        for definition in load_definitions(*KINDS):
            await self.cluster.apply(definition, manager=MANAGER, force=True)
            await self._wait_until_served(definition)
        options = EngineOptions(
            self._trees.folder, wave_delay_seconds=0.0, workers=4, render_workers=1, grace_seconds=0.1
        )
        engine = Engine(self.cluster, options, DEFAULT_NAMESPACE, repositories=self._trees, render_pool=self.crew)
        engine_task = asyncio.create_task(engine.run(), name="engine")
        self.end.push_async_callback(_cancel, engine_task)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _find_map(manifest: Manifest, *path: str) -> Mapping[str, Any]:
    value: Any = manifest
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


@contextlib.asynccontextmanager
async def open_stage(folder: Path, crew: ProcessPool, addons: str = ADDONS) -> AsyncIterator[Stage]:
    """Open a cluster in memory. `crew` renders; the caller closes it."""
    token = secrets.token_urlsafe(16)
    loaded_addons = load_addons(addons)
    failed = asyncio.Event()
    async with (
        ControlPlane.open(None, admin_token=token) as plane,
        run_addons(loaded_addons, EmbeddedCluster(plane), on_failure=failed.set, folder=folder),
        contextlib.AsyncExitStack() as end,
    ):
        plane.subresources.pod_logs = next(
            (addon.pod_log_reader for addon in loaded_addons if addon.pod_log_reader), None
        )
        yield Stage(EmbeddedCluster(plane), folder, token, end, crew)


class WorkingTrees(Repositories):
    """Repositories, some of which are replaced by local folders, including uncommitted changes."""

    def __init__(self, mirrors: Path, homes: Mapping[str, Path]) -> None:
        super().__init__(mirrors, SourceSettings())
        self._homes = homes
        self.looks = 0  # incremented when the files may have changed

    async def checkout(self, url: str, ref: str, **more: Any) -> Checkout:
        home = self._homes.get(url)
        if home is None:
            return await super().checkout(url, ref, **more)
        # Renderings are cached by revision, so changed files need a new revision name.
        revision = read_head(str(home)).commit if self.looks <= 1 else ""
        return Checkout(FolderTree(home), revision or f"{UNCOMMITTED_REVISION}-{self.looks}")

    def is_local(self, url: str) -> bool:
        return url not in self._homes and super().is_local(url)
