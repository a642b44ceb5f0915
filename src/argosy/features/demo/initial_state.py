"""Initial state of the demo: dev synced automatically, staging one commit behind, production not deployed.

In: a cluster with an engine, a repository. Out: the initial state. Never: overwrites changes of users.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from argosy.errors import ClusterError, TransientError
from argosy.features.demo.content import (
    DEV,
    PRODUCTION,
    STAGING,
    add_mirror,
    applications,
    build_settings,
    notebook_operator,
)
from argosy.features.init.template_files import REPO_URL
from argosy.gitops.source.settings import MIRRORS
from argosy.gitops.source.settings import PLACE as SETTINGS
from argosy.gitops.workspace.bare_repository import BareRepository
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

MANAGER: Final = "argosy-demo"
PATIENCE: Final = 60.0
ARRANGED: Final = {STAGING: ("OutOfSync", "Healthy"), DEV: ("Synced", "Healthy"), PRODUCTION: ("OutOfSync", "Missing")}
Tell = Callable[[str], None]
Status = dict[str, Any]


class Arranger:
    def __init__(self, cluster: Cluster, repository: BareRepository, namespace: str, tell: Tell) -> None:
        self.cluster, self.repository, self.namespace, self.tell = cluster, repository, namespace, tell

    async def prepare(self) -> bool:
        """Create settings and Applications. False if all existed already: the demo continues from kept data."""
        await self.set_mirror(REPO_URL)
        for manifest in notebook_operator():
            await self.make(manifest)
        wanted = applications(self.repository, self.namespace)
        made = [await self.make(each) for each in wanted]
        return any(made)

    async def set_mirror(self, url: str) -> None:
        """Map the URL in the manifests to the demo's repository; other keys of argosy-cm are kept."""
        live = await self.cluster.get(ResourceKey("", "ConfigMap", self.namespace, SETTINGS)) or {}
        mirrors = add_mirror((live.get("data") or {}).get(MIRRORS) or "", url, self.repository.folder)
        await self.cluster.apply(build_settings(self.namespace, mirrors), manager=MANAGER, force=True)

    async def make(self, manifest: Manifest) -> bool:
        if await self.cluster.get(key_of(manifest)) is not None:
            return False
        await self.cluster.create(manifest)
        return True

    async def deliver(self) -> None:
        """Sync staging to its first two commits, while dev syncs automatically."""
        first, second, _ = self.repository.commits()[:3]
        self.tell("waiting for the automated sync of dev, and syncing staging twice")
        await self.sync(STAGING, first)
        await self.sync(STAGING, second)
        self.tell("waiting for the expected sync and health status")
        while not await self.is_arranged():  # a healthy model may still be rolling out
            for name, words in ARRANGED.items():
                await self.until(name, lambda status, words=words: words_of(status) == words)  # type: ignore[misc]

    async def is_arranged(self) -> bool:
        return all([words_of((await self.app(name)).get("status") or {}) == words for name, words in ARRANGED.items()])

    async def sync(self, name: str, revision: str) -> None:
        options = (await self.app(name))["spec"]["syncPolicy"].get("syncOptions") or []
        request = {"sync": {"revision": revision, "syncOptions": options}, "initiatedBy": {"username": "ann"}}
        await self.cluster.patch(self.key(name), {"operation": request})
        app = await self.until(name, lambda status: _is_over(status, revision))
        state = app["status"]["operationState"]
        if state["phase"] != "Succeeded":
            raise TransientError(f"the demo's own sync of {name} ended as {state['phase']}: {state.get('message')}")

    async def until(self, name: str, holds: Callable[[Status], bool]) -> Manifest:
        app: Manifest = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    app = await self.app(name)
                    if holds(app.get("status") or {}):
                        return app
                    await asyncio.sleep(0.03)
        except TimeoutError:
            sync, health = words_of(app.get("status") or {})
            message = f"{name} is {sync} and {health} after {PATIENCE:.0f} s; {_told(app)}"
            raise TransientError(f"{message}; start the demo again, or see: argosy app get {name}") from None

    async def app(self, name: str) -> Manifest:
        found = await self.cluster.get(self.key(name))
        if found is None:
            raise ClusterError(f"{name} was deleted while the demo started", code=404)
        return found

    def key(self, name: str) -> ResourceKey:
        return ResourceKey("argoproj.io", "Application", self.namespace, name)


def words_of(status: Status) -> tuple[str, str]:
    return (status.get("sync") or {}).get("status", "Unknown"), (status.get("health") or {}).get("status", "Unknown")


def _is_over(status: Status, revision: str) -> bool:
    state = status.get("operationState") or {}
    is_this = (state.get("operation") or {}).get("sync", {}).get("revision") == revision
    return is_this and state.get("phase") in ("Succeeded", "Failed", "Error")


def conditions_of(status: Status) -> Sequence[Status]:
    return status.get("conditions") or ()


def _told(app: Manifest) -> str:
    found = conditions_of(app.get("status") or {})
    return ", ".join(f"{each['type']}: {each['message']}" for each in found) or "no conditions"
