"""Access to Applications in one cluster: find, list, patch.

In: an open cluster. Out: an ApplicationService, and Applications by name. Never: guesses a wrong name: the error
suggests the closest match.
"""

from __future__ import annotations

import asyncio
import difflib
import getpass
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.gitops.application import Application, read_application
from argosy.kube.client import Cluster
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.whoami import whoami
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

MAX_WRITE_ATTEMPTS: Final = 8  # write attempts on conflict
FIRST_RETRY_SECONDS: Final = 0.005  # seconds before the second attempt; doubles each time

PatchBody = dict[str, Any]
ClusterOpener = Callable[[Connection], AbstractAsyncContextManager[Cluster]]


class ApplicationNotFound(UserError):
    """No Application has the requested name."""


@dataclass(frozen=True)
class ApplicationService:
    cluster: Cluster
    cluster_name: str  # display name of the cluster
    control_namespace: str  # the control namespace
    namespace: str  # default namespace of Applications
    acting_user: str = ""  # user that a server acts for; empty: the user of this process
    opener: ClusterOpener | None = None  # opens other clusters; None if not possible
    plugin_sockets: str = ""  # folder with the sockets of plug-ins in sidecars; empty: none

    async def find_user(self) -> str:
        """Return the current user: as the cluster reports it, else the local user name."""
        if self.acting_user:
            return self.acting_user
        try:
            return await whoami(self.cluster) or getpass.getuser()
        except (OSError, KeyError):
            return ""

    async def load_application(self, name: str) -> Application:
        """Load an Application by `NAME` or `NAMESPACE/NAME`."""
        namespace, _, app_name = name.rpartition("/")
        key = ResourceKey(*APPLICATION, namespace or self.namespace, app_name)
        manifest = await self.get_manifest(key)
        if manifest is None:
            raise await self._build_not_found(key)
        return read_application(manifest, f"Application {key.namespace}/{key.name}")

    async def get_manifest(self, key: ResourceKey) -> Manifest | None:
        try:
            return await self.cluster.get(key)
        except ClusterError as error:
            raise _explain_unserved_kind(error) from error

    async def list_applications(self, selector: str = "", *, all_namespaces: bool = False) -> list[Application]:
        namespace = "" if all_namespaces else self.namespace
        try:
            listing = await self.cluster.list(APPLICATION, namespace=namespace, labels=selector)
        except ClusterError as error:
            raise _explain_unserved_kind(error) from error
        apps = [read_application(manifest, f"Application {manifest['metadata']['name']}") for manifest in listing.items]
        return sorted(apps, key=lambda app: (app.namespace, app.name))

    async def load_selected(self, names: Sequence[str], selector: str = "", project: str = "") -> list[Application]:
        """Load the named Applications, or all that match the labels or the project."""
        if names:
            return [await self.load_application(name) for name in names]
        apps = [app for app in await self.list_applications(selector) if not project or app.project == project]
        if not apps:
            criterion = f"labels {selector!r}" if selector else f"project {project!r}"
            raise ApplicationNotFound(
                f"no Application in {self.namespace} has {criterion}; see them all: argosy app list"
            )
        return apps

    async def patch_application(
        self, app: Application, build_patch: Callable[[Application], PatchBody | None]
    ) -> Application:
        """Patch the current version and retry on conflict; `build_patch` returns None if nothing has to change."""
        for attempt in range(MAX_WRITE_ATTEMPTS):
            patch = build_patch(app)
            if patch is None:
                return app
            version = app.wire["metadata"].get("resourceVersion")
            patch_at_version = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
            try:
                return read_application(await self.cluster.patch(app.key, patch_at_version))
            except Conflict:
                await asyncio.sleep(FIRST_RETRY_SECONDS * 2**attempt)
                app = await self.load_application(f"{app.namespace}/{app.name}")
        raise UserError(f"{app.name}: gave up after {MAX_WRITE_ATTEMPTS} write conflicts; try again")

    async def record_event(self, event: Manifest) -> str:
        """Write an Event; return the error text, empty on success. A failure does not undo the action."""
        try:
            await self.cluster.create(event)
        except ClusterError as error:
            return "" if error.code == 409 else f"Event not recorded: {error.message}"
        return ""

    async def _build_not_found(self, key: ResourceKey) -> ApplicationNotFound:
        try:
            names = [app.name for app in await self.list_applications()]
        except (ClusterError, UserError):
            names = []
        close_matches = difflib.get_close_matches(key.name, names, n=1)
        hint = f"did you mean {close_matches[0]}?" if close_matches else "list them: argosy app list"
        return ApplicationNotFound(f"Application {key.name!r} not found in {key.namespace}; {hint}")


def _explain_unserved_kind(error: ClusterError) -> Exception:
    if error.code == 404:
        return UserError("this cluster does not serve Applications; start the controller: argosy controller")
    return error


def utc_now() -> datetime:
    return datetime.now(UTC)


def current_timestamp() -> str:
    return format_timestamp(utc_now())


ServiceOpener = Callable[
    [], AbstractAsyncContextManager[ApplicationService]
]  # for callers that may not need the cluster or open it late
