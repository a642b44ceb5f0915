"""Where a command works: the cluster, the namespace of Applications, and who asks.

In: a cluster that is open. Out: a Desk, and Applications by name. Never: a guess where a name is wrong: the
nearest is offered.
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
ATTEMPTS: Final = 8  # to write what somebody else writes at the same time
PAUSE: Final = 0.005  # seconds after the first of them

Patch = dict[str, Any]
Opener = Callable[[Connection], AbstractAsyncContextManager[Cluster]]


class NoApplication(UserError):
    """There is none of that name."""


@dataclass(frozen=True)
class Desk:
    cluster: Cluster
    where: str  # for people
    control: str  # the control namespace
    namespace: str  # of Applications that are named without one
    signer: str = ""  # on whose behalf a server works; empty: whoever started this process
    opener: Opener | None = None  # opens other clusters, where that is possible

    async def who(self) -> str:
        """Who asks: as the cluster knows them, else as this machine does."""
        if self.signer:
            return self.signer
        try:
            return await whoami(self.cluster) or getpass.getuser()
        except (OSError, KeyError):
            return ""

    async def find(self, name: str) -> Application:
        """By `NAME` or `NAMESPACE/NAME`."""
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
        """Those that are named, or all that the labels or the project select."""
        if names:
            return [await self.find(each) for each in names]
        found = [app for app in await self.all(selector) if not project or app.project == project]
        if not found:
            what = f"labels {selector!r}" if selector else f"project {project!r}"
            raise NoApplication(f"no Application in {self.namespace} has {what}; see them all: argosy app list")
        return found

    async def revise(self, app: Application, make: Callable[[Application], Patch | None]) -> Application:
        """Patched on what it is now, and asked again whenever somebody else was first. None: nothing to write."""
        for attempt in range(ATTEMPTS):
            patch = make(app)
            if patch is None:
                return app
            version = app.wire["metadata"].get("resourceVersion")
            guarded = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
            try:
                return read_application(await self.cluster.patch(app.key, guarded))
            except Conflict:
                await asyncio.sleep(PAUSE * 2**attempt)  # who writes is given the time to end it
                app = await self.find(f"{app.namespace}/{app.name}")
        raise UserError(f"{app.name}: others write it all the time; try again")

    async def record(self, event: Manifest) -> str:
        """Why it could not be recorded; empty if it was. What was done is done all the same."""
        try:
            await self.cluster.create(event)
        except ClusterError as error:
            return "" if error.code == 409 else f"no Event was recorded: {error.message}"
        return ""

    async def _unknown(self, key: ResourceKey) -> NoApplication:
        try:
            names = [app.name for app in await self.all()]
        except (ClusterError, UserError):
            names = []
        near = difflib.get_close_matches(key.name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else "see which there are: argosy app list"
        return NoApplication(f"there is no Application {key.name!r} in {key.namespace}; {hint}")


def _unserved(error: ClusterError) -> Exception:
    if error.code == 404:
        return UserError("this cluster does not know Applications; start what delivers them: argosy controller")
    return error


def clock() -> datetime:
    return datetime.now(UTC)


def now() -> str:
    return written(clock())


Opening = Callable[[], AbstractAsyncContextManager[Desk]]  # for those who may do without a cluster, or ask it late
