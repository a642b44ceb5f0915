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
from argosy.kube.client.connection import Connection
from argosy.kube.client.whoami import whoami
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written

APPLICATION: Final = GroupKind("argoproj.io", "Application")
ATTEMPTS: Final = 8  # write attempts on conflict
PAUSE: Final = 0.005  # seconds before the second attempt; doubles each time

Patch = dict[str, Any]
Opener = Callable[[Connection], AbstractAsyncContextManager[Cluster]]


class NoApplication(UserError):
    """No Application has the requested name."""


@dataclass(frozen=True)
class Desk:
    cluster: Cluster
    where: str  # display name of the cluster
    control: str  # the control namespace
    namespace: str  # default namespace of Applications
    signer: str = ""  # user that a server acts for; empty: the user of this process
    opener: Opener | None = None  # opens other clusters; None if not possible

    async def who(self) -> str:
        """Return the current user: as the cluster reports it, else the local user name."""
        if self.signer:
            return self.signer
        try:
            return await whoami(self.cluster) or getpass.getuser()
        except (OSError, KeyError):
            return ""

    async def find(self, name: str) -> Application:
        """Load an Application by `NAME` or `NAMESPACE/NAME`."""
        namespace, _, plain = name.rpartition("/")
        key = ResourceKey(*APPLICATION, namespace or self.namespace, plain)
        found = await self.get(key)
        if found is None:
            raise await self._unknown(key)
        return read_application(found, f"Application {key.namespace}/{key.name}")

    async def get(self, key: ResourceKey) -> Manifest | None:
        try:
            return await self.cluster.get(key)
        except ClusterError as error:
            raise _unserved(error) from error

    async def all(self, selector: str = "", *, everywhere: bool = False) -> list[Application]:
        namespace = "" if everywhere else self.namespace
        try:
            found = await self.cluster.list(APPLICATION, namespace=namespace, labels=selector)
        except ClusterError as error:
            raise _unserved(error) from error
        apps = [read_application(each, f"Application {each['metadata']['name']}") for each in found.items]
        return sorted(apps, key=lambda app: (app.namespace, app.name))

    async def chosen(self, names: Sequence[str], selector: str = "", project: str = "") -> list[Application]:
        """Load the named Applications, or all that match the labels or the project."""
        if names:
            return [await self.find(each) for each in names]
        found = [app for app in await self.all(selector) if not project or app.project == project]
        if not found:
            what = f"labels {selector!r}" if selector else f"project {project!r}"
            raise NoApplication(f"no Application in {self.namespace} has {what}; see them all: argosy app list")
        return found

    async def revise(self, app: Application, make: Callable[[Application], Patch | None]) -> Application:
        """Patch the current version and retry on conflict; `build_patch` returns None if nothing has to change."""
        for attempt in range(ATTEMPTS):
            patch = make(app)
            if patch is None:
                return app
            version = app.wire["metadata"].get("resourceVersion")
            guarded = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
            try:
                return read_application(await self.cluster.patch(app.key, guarded))
            except Conflict:
                await asyncio.sleep(PAUSE * 2**attempt)
                app = await self.find(f"{app.namespace}/{app.name}")
        raise UserError(f"{app.name}: gave up after {ATTEMPTS} write conflicts; try again")

    async def record(self, event: Manifest) -> str:
        """Write an Event; return the error text, empty on success. A failure does not undo the action."""
        try:
            await self.cluster.create(event)
        except ClusterError as error:
            return "" if error.code == 409 else f"Event not recorded: {error.message}"
        return ""

    async def _unknown(self, key: ResourceKey) -> NoApplication:
        try:
            names = [app.name for app in await self.all()]
        except (ClusterError, UserError):
            names = []
        near = difflib.get_close_matches(key.name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else "list them: argosy app list"
        return NoApplication(f"Application {key.name!r} not found in {key.namespace}; {hint}")


def _unserved(error: ClusterError) -> Exception:
    if error.code == 404:
        return UserError("this cluster does not serve Applications; start the controller: argosy controller")
    return error


def clock() -> datetime:
    return datetime.now(UTC)


def now() -> str:
    return written(clock())


Opening = Callable[[], AbstractAsyncContextManager[Desk]]  # for callers that may not need the cluster or open it late
