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
from argosy.gitops.application.operations import Progress
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.control_namespace import USUAL
from argosy.gitops.application_client.summary import health_word, is_busy, sync_word
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.wire_format import mappings
from argosy.kube.client import PatchKind
from argosy.kube.client.resource_names import read_names
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of, read_manifests
from argosy.testing.background import Background, Held
from argosy.testing.cluster.stage import ADDONS, Stage, open_stage
from argosy.testing.manifests import Manifests

if TYPE_CHECKING:
    from argosy.isolation.process_pool import Crew
    from argosy.testing.repository import Repo

DEFAULT: Final = "default"
Given = Manifests | Sequence[Manifest] | Manifest | Path | str
LOOKS: Final = 1.0  # seconds that a failing comparison has to recover
SOON: Final = 0.02  # seconds between two polls
WELL: Final = ("Synced", "Healthy")


class Sandbox:
    """Kinds are written as for kubectl: `deploy`, `Deployment`, `inferenceservices.serving.kserve.io`."""

    def __init__(
        self, background: Background, folder: Path, crew: Crew, repo: Callable[[], Repo], addons: str = ADDONS
    ) -> None:
        self._background, self._repo = background, repo
        self._held: Held[Stage] = Held(background, open_stage(folder, crew, addons))
        self._stage = self._held.thing
        self.cluster = self._stage.cluster

    def apply(self, what: Given, namespace: str = "") -> list[Manifest]:
        """Apply manifests, a manifest, a file or YAML. Missing namespaces are created."""
        __tracebackhide__ = True
        given: Sequence[Manifest]
        match what:
            case Path():
                given = read_manifests(what.read_bytes(), where=str(what))
            case str():
                given = read_manifests(what.encode(), where="the test")
            case dict():
                given = [what]
            case _:
                given = list(what)
        if not namespace and isinstance(what, Manifests):
            namespace = what.namespace
        return self._background.run(self._stage.apply(given, namespace or DEFAULT))

    def get(self, kind: str, name: str, namespace: str = DEFAULT) -> Manifest | None:
        __tracebackhide__ = True
        return self._background.run(self._get(kind, name, namespace))

    def list(self, kind: str, namespace: str = "", labels: str = "") -> list[Manifest]:
        """List objects; of all namespaces if `namespace` is empty."""
        __tracebackhide__ = True

        async def listed() -> list[Manifest]:
            found = read_names([kind], await self.cluster.kinds())[0].kind
            return [*(await self.cluster.list(found, namespace=namespace, labels=labels)).items]

        return self._background.run(listed())

    def patch(self, kind: str, name: str, patch: Mapping[str, Any], namespace: str = DEFAULT) -> Manifest:
        """Apply a merge patch, like a manual change with kubectl."""
        __tracebackhide__ = True

        async def patched() -> Manifest:
            key = await self._key(kind, name, namespace)
            return await self.cluster.patch(key, dict(patch), kind_of_patch=PatchKind.MERGE)

        return self._background.run(patched())

    def delete(self, kind: str, name: str, namespace: str = DEFAULT) -> None:
        __tracebackhide__ = True

        async def deleted() -> None:
            await self.cluster.delete(await self._key(kind, name, namespace))

        self._background.run(deleted())

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

        async def waited() -> Manifest | None:
            ends = asyncio.get_running_loop().time() + seconds
            while True:
                found = await self._get(kind, name, namespace)
                with contextlib.suppress(LookupError, TypeError):
                    if found is not None and until(found):
                        return found
                if asyncio.get_running_loop().time() > ends:
                    return None
                await asyncio.sleep(SOON)

        found = self._background.run(waited())
        if found is None:
            last = self.get(kind, name, namespace)
            status = (last or {}).get("status") if last else "not found"
            raise AssertionError(f"{kind}/{name} -n {namespace}: condition not met in {seconds:g} s; status: {status}")
        return found

    def deliver(self, application: str, *, seconds: float = 60.0) -> Manifest:
        """Sync an Application from the files on disk, with waves and hooks, until it is Synced and Healthy."""
        __tracebackhide__ = True
        repo = self._repo()
        app, why = self._background.run(self._deliver(repo.application(application), repo.homes(application), seconds))
        if why:
            state = f"{sync_word(app)}, {health_word(app)}"
            raise AssertionError("\n  ".join([f"{application} is {state}:", *why]))
        return dict(app.wire)

    async def _deliver(
        self, manifest: Manifest, homes: Mapping[str, Path], seconds: float
    ) -> tuple[Application, Sequence[str]]:
        from argosy.gitops.application_client.unmet_conditions import causes

        key = key_of(await self._stage.deliver(manifest, homes))
        now = asyncio.get_running_loop().time
        ends = now() + seconds
        while True:
            found = read_application(await self.cluster.get(key) or manifest)
            if (sync_word(found), health_word(found)) == WELL and not is_busy(found):
                return found, ()
            if _cannot_be_compared(found):
                ends = min(ends, now() + LOOKS)
            if _has_failed(found) or now() > ends:
                desk = Desk(self.cluster, "the sandbox of this test", USUAL, USUAL)
                return found, await causes(desk, found) or ["the status gives no reason"]
            await asyncio.sleep(SOON)

    @property
    def kubeconfig(self) -> Path:
        """Path of a kubeconfig for kubectl; the sandbox listens on localhost from the first use."""
        return self._background.run(self._stage.serve())

    async def _get(self, kind: str, name: str, namespace: str) -> Manifest | None:
        return await self.cluster.get(await self._key(kind, name, namespace))

    async def _key(self, kind: str, name: str, namespace: str) -> ResourceKey:
        return read_names([kind], await self.cluster.kinds())[0].key(name, namespace)

    def close(self) -> None:
        self._held.close()


def _cannot_be_compared(app: Application) -> bool:
    return any(each.get("type") == ConditionType.COMPARISON_ERROR for each in mappings(app.status.get("conditions")))


def _has_failed(app: Application) -> bool:
    """True if the sync operation has ended in a failure."""
    state = app.state
    return state is not None and state.progress in (Progress.FAILED, Progress.ERROR) and not is_busy(app)
