"""Initial state of the demo: dev synced automatically, staging one commit behind, production not deployed.

In: a cluster with an engine, a repository. Out: the initial state. Never: overwrites changes of users.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from argosy.errors import ClusterError, TransientError
from argosy.features.demo.content import (
    DEV,
    PRODUCTION,
    STAGING,
    add_mirror,
    build_notebook_operator,
    build_settings,
    read_applications,
)
from argosy.features.init.template_files import DEFAULT_REPO_URL
from argosy.gitops.source.repository_access_settings import CONFIG_MAP as SETTINGS
from argosy.gitops.source.repository_access_settings import MIRRORS_SETTING
from argosy.gitops.workspace.hosted_bare_repository import BareRepository
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, CONFIG_MAP

FIELD_MANAGER: Final = "argosy-demo"
WAIT_TIMEOUT_SECONDS: Final = 60.0
EXPECTED_STATES: Final = {
    STAGING: ("OutOfSync", "Healthy"),
    DEV: ("Synced", "Healthy"),
    PRODUCTION: ("OutOfSync", "Missing"),
}
ReportSetupProgress = Callable[[str], None]
AppStatusMap = dict[str, Any]


class InitialStateSetup:
    def __init__(
        self, cluster: Cluster, repository: BareRepository, namespace: str, report: ReportSetupProgress
    ) -> None:
        self.cluster, self.repository, self.namespace, self.report = cluster, repository, namespace, report

    async def create_objects(self) -> bool:
        """Create settings and Applications. False if all existed already: the demo continues from kept data."""
        await self.set_mirror(DEFAULT_REPO_URL)
        for manifest in build_notebook_operator():
            await self.create_if_missing(manifest)
        app_manifests = read_applications(self.repository, self.namespace)
        results = [await self.create_if_missing(app_manifest) for app_manifest in app_manifests]
        return any(results)

    async def set_mirror(self, url: str) -> None:
        """Map the URL in the manifests to the demo's repository; other keys of argosy-cm are kept."""
        live = await self.cluster.get(ResourceKey(*CONFIG_MAP, self.namespace, SETTINGS)) or {}
        mirrors = add_mirror((live.get("data") or {}).get(MIRRORS_SETTING) or "", url, self.repository.folder)
        await self.cluster.apply(build_settings(self.namespace, mirrors), manager=FIELD_MANAGER, force=True)

    async def create_if_missing(self, manifest: Manifest) -> bool:
        if await self.cluster.get(key_of(manifest)) is not None:
            return False
        await self.cluster.create(manifest)
        return True

    async def sync_applications(self) -> None:
        """Sync staging to its first two commits, while dev syncs automatically."""
        first, second, _ = self.repository.list_commits()[:3]
        self.report("waiting for the automated sync of dev, and syncing staging twice")
        await self.sync_application(STAGING, first)
        await self.sync_application(STAGING, second)
        self.report("waiting for the expected sync and health status")
        while not await self.has_expected_state():  # a healthy model may still be rolling out
            for name, expected in EXPECTED_STATES.items():
                await self.wait_for_status(name, partial(_has_state, expected=expected))

    async def has_expected_state(self) -> bool:
        return all(
            [
                read_sync_and_health((await self.get_application(name)).get("status") or {}) == expected
                for name, expected in EXPECTED_STATES.items()
            ]
        )

    async def sync_application(self, name: str, revision: str) -> None:
        options = (await self.get_application(name))["spec"]["syncPolicy"].get("syncOptions") or []
        request = {"sync": {"revision": revision, "syncOptions": options}, "initiatedBy": {"username": "ann"}}
        await self.cluster.patch(self.application_key(name), {"operation": request})
        app = await self.wait_for_status(name, lambda status: _is_operation_completed(status, revision))
        state = app["status"]["operationState"]
        if state["phase"] != "Succeeded":
            raise TransientError(f"the demo's own sync of {name} ended as {state['phase']}: {state.get('message')}")

    async def wait_for_status(self, name: str, is_reached: Callable[[AppStatusMap], bool]) -> Manifest:
        app: Manifest = {}
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_SECONDS):
                while True:
                    app = await self.get_application(name)
                    if is_reached(app.get("status") or {}):
                        return app
                    await asyncio.sleep(0.03)
        except TimeoutError:
            sync, health = read_sync_and_health(app.get("status") or {})
            message = f"{name} is {sync} and {health} after {WAIT_TIMEOUT_SECONDS:.0f} s; {_describe_conditions(app)}"
            raise TransientError(f"{message}; start the demo again, or see: argosy app get {name}") from None

    async def get_application(self, name: str) -> Manifest:
        application = await self.cluster.get(self.application_key(name))
        if application is None:
            raise ClusterError(f"{name} was deleted while the demo started", code=404)
        return application

    def application_key(self, name: str) -> ResourceKey:
        return ResourceKey(*APPLICATION, self.namespace, name)


def _has_state(status: AppStatusMap, expected: tuple[str, str]) -> bool:
    return read_sync_and_health(status) == expected


def read_sync_and_health(status: AppStatusMap) -> tuple[str, str]:
    return (status.get("sync") or {}).get("status", "Unknown"), (status.get("health") or {}).get("status", "Unknown")


def _is_operation_completed(status: AppStatusMap, revision: str) -> bool:
    state = status.get("operationState") or {}
    is_same_revision = (state.get("operation") or {}).get("sync", {}).get("revision") == revision
    return is_same_revision and state.get("phase") in ("Succeeded", "Failed", "Error")


def read_conditions(status: AppStatusMap) -> Sequence[AppStatusMap]:
    return status.get("conditions") or ()


def _describe_conditions(app: Manifest) -> str:
    conditions = read_conditions(app.get("status") or {})
    return ", ".join(f"{condition['type']}: {condition['message']}" for condition in conditions) or "no conditions"
