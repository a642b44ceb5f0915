"""A cluster for one test, with simulated Pods, models and Routes, and an engine that syncs Applications.

In: manifests, kinds and names as for kubectl. Out: live objects. Never: uses another cluster or another test's objects.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from argosy.gitops.application import Application, read_application
from argosy.gitops.application.operations import OperationPhase
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.control_namespace import DEFAULT_NAMESPACE
from argosy.gitops.application_client.status_summary import is_busy, read_health_status, read_sync_status
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.status_json_conversions import as_mappings
from argosy.kube.client import PatchKind
from argosy.kube.client.resource_arguments import parse_resource_arguments
from argosy.kube.objects import Manifest, key_of, read_manifests
from argosy.kube.resource_key import ResourceKey
from argosy.testing.background_event_loop import Background, Held
from argosy.testing.cluster.embedded_cluster_with_engine import ADDONS, Stage, open_stage
from argosy.testing.rendered_manifest_lookup import Manifests

if TYPE_CHECKING:
    from argosy.isolation.trusted_process_pool import ProcessPool
    from argosy.testing.user_repository_renders import Repo

DEFAULT: Final = "default"
Given = Manifests | Sequence[Manifest] | Manifest | Path | str
LOOKS: Final = 1.0  # seconds that a failing comparison has to recover
POLL_INTERVAL_SECONDS: Final = 0.02  # seconds between two polls
WELL: Final = ("Synced", "Healthy")


class Sandbox:
    """Kinds are written as for kubectl: `deploy`, `Deployment`, `inferenceservices.serving.kserve.io`."""

    def __init__(
        self, background: Background, folder: Path, crew: ProcessPool, repo: Callable[[], Repo], addons: str = ADDONS
    ) -> None:
        self._background, self._repo = background, repo
        self._held: Held[Stage] = Held(background, open_stage(folder, crew, addons))
        self._stage = self._held.thing
        self.cluster = self._stage.cluster

    def apply(self, what: Given, namespace: str = "") -> list[Manifest]:
        """Apply manifests, a manifest, a file or YAML. Missing namespaces are created."""
        __tracebackhide__ = True
        manifests: Sequence[Manifest]
        match what:
            case Path():
                manifests = read_manifests(what.read_bytes(), where=str(what))
            case str():
                manifests = read_manifests(what.encode(), where="the test")
            case dict():
                manifests = [what]
            case _:
                manifests = list(what)
        if not namespace and isinstance(what, Manifests):
            namespace = what.namespace
        return self._background.run(self._stage.apply(manifests, namespace or DEFAULT))

    def get(self, kind: str, name: str, namespace: str = DEFAULT) -> Manifest | None:
        __tracebackhide__ = True
        return self._background.run(self._get(kind, name, namespace))

    def list(self, kind: str, namespace: str = "", labels: str = "") -> list[Manifest]:
        """List objects; of all namespaces if `namespace` is empty."""
        __tracebackhide__ = True

        async def list_objects() -> list[Manifest]:
            group_kind = parse_resource_arguments([kind], await self.cluster.kinds())[0].kind
            return [*(await self.cluster.list(group_kind, namespace=namespace, labels=labels)).items]

        return self._background.run(list_objects())

    def patch(self, kind: str, name: str, patch: Mapping[str, Any], namespace: str = DEFAULT) -> Manifest:
        """Apply a merge patch, like a manual change with kubectl."""
        __tracebackhide__ = True

        async def patch_object() -> Manifest:
            key = await self._key(kind, name, namespace)
            return await self.cluster.patch(key, dict(patch), kind_of_patch=PatchKind.MERGE)

        return self._background.run(patch_object())

    def delete(self, kind: str, name: str, namespace: str = DEFAULT) -> None:
        __tracebackhide__ = True

        async def delete_object() -> None:
            await self.cluster.delete(await self._key(kind, name, namespace))

        self._background.run(delete_object())

    def wait(
        self,
        kind: str,
        name: str,
        until: Callable[[Manifest], object],
        *,
        namespace: str = DEFAULT,
        seconds: float = 20.0,
    ) -> Manifest:
        """Wait until `until(object)` is true and return the object; a missing field counts as not true yet."""
        __tracebackhide__ = True

        async def poll() -> Manifest | None:
            deadline = asyncio.get_running_loop().time() + seconds
            while True:
                manifest = await self._get(kind, name, namespace)
                with contextlib.suppress(LookupError, TypeError):
                    if manifest is not None and until(manifest):
                        return manifest
                if asyncio.get_running_loop().time() > deadline:
                    return None
                await asyncio.sleep(POLL_INTERVAL_SECONDS)

        manifest = self._background.run(poll())
        if manifest is None:
            last = self.get(kind, name, namespace)
            status = (last or {}).get("status") if last else "not found"
            raise AssertionError(f"{kind}/{name} -n {namespace}: condition not met in {seconds:g} s; status: {status}")
        return manifest

    def deliver(self, application: str, *, seconds: float = 60.0) -> Manifest:
        """Sync an Application from the files on disk, with waves and hooks, until it is Synced and Healthy."""
        __tracebackhide__ = True
        repo = self._repo()
        app, reasons = self._background.run(
            self._deliver(repo.application(application), repo.homes(application), seconds)
        )
        if reasons:
            state = f"{read_sync_status(app)}, {read_health_status(app)}"
            raise AssertionError("\n  ".join([f"{application} is {state}:", *reasons]))
        return dict(app.wire)

    async def _deliver(
        self, manifest: Manifest, homes: Mapping[str, Path], seconds: float
    ) -> tuple[Application, Sequence[str]]:
        from argosy.gitops.application_client.unsynced_unhealthy_reasons import list_unsynced_unhealthy_reasons

        key = key_of(await self._stage.deliver(manifest, homes))
        now = asyncio.get_running_loop().time
        deadline = now() + seconds
        while True:
            application = read_application(await self.cluster.get(key) or manifest)
            if (read_sync_status(application), read_health_status(application)) == WELL and not is_busy(application):
                return application, ()
            if _cannot_be_compared(application):
                deadline = min(deadline, now() + LOOKS)
            if _has_failed(application) or now() > deadline:
                service = ApplicationService(
                    self.cluster, "the sandbox of this test", DEFAULT_NAMESPACE, DEFAULT_NAMESPACE
                )
                return application, await list_unsynced_unhealthy_reasons(service, application) or [
                    "the status gives no reason"
                ]
            await asyncio.sleep(POLL_INTERVAL_SECONDS)

    @property
    def kubeconfig(self) -> Path:
        """Path of a kubeconfig for kubectl; the sandbox listens on localhost from the first use."""
        return self._background.run(self._stage.serve())

    async def _get(self, kind: str, name: str, namespace: str) -> Manifest | None:
        return await self.cluster.get(await self._key(kind, name, namespace))

    async def _key(self, kind: str, name: str, namespace: str) -> ResourceKey:
        return parse_resource_arguments([kind], await self.cluster.kinds())[0].build_key(name, namespace)

    def close(self) -> None:
        self._held.close()


def _cannot_be_compared(app: Application) -> bool:
    return any(
        condition.get("type") == ConditionType.COMPARISON_ERROR
        for condition in as_mappings(app.status.get("conditions"))
    )


def _has_failed(app: Application) -> bool:
    """True if the sync operation has ended in a failure."""
    state = app.state
    return state is not None and state.phase in (OperationPhase.FAILED, OperationPhase.ERROR) and not is_busy(app)
