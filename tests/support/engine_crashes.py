"""Runs scenes in which engines crash or requests fail: a cluster, sources in memory, and one engine after another.

In: scenes. Out: their outcomes. Never: mocks a cluster; all requests go to a real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from argosy import annotations as names
from argosy.errors import ClusterError, UnknownRef
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.client.forwarding_cluster import WRITE_METHODS, Call, ForwardingCluster, Send
from argosy.kube.objects import Manifest, dump_yaml_documents, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import furnish
from support.file_trees import TextTree
from support.sync_operations import LISTED, NAMESPACE, all_goes_well

CONTROL = "argocd"
URL = "https://git.example.com/models.git"
APP = ResourceKey("argoproj.io", "Application", CONTROL, "models")
WATCHED = (*LISTED, GroupKind("", "Namespace"), GroupKind("", "Service"))
COUNTED = WRITE_METHODS | {"get"}
T = TypeVar("T")


class Crash(BaseException):
    """Not an Exception, so that the product cannot catch it."""


class Shelf(Repositories):
    """A source with revisions in memory. A branch may move to any of them, and the host may be unreachable."""

    def __init__(self) -> None:
        super().__init__(Path("unused"), SourceSettings())
        self.revisions: dict[str, TextTree] = {}
        self.head = ""
        self.trouble: Callable[[str], Exception | None] = lambda ref: None

    def push(self, manifests: Sequence[Manifest]) -> str:
        return self.push_files({"app/all.yaml": manifests})

    def push_files(self, files: Mapping[str, Sequence[Manifest]]) -> str:
        texts = {path: dump_yaml_documents(manifests) for path, manifests in files.items()}
        self.head = hashlib.sha1(repr(texts).encode(), usedforsecurity=False).hexdigest()
        self.revisions[self.head] = TextTree(texts)
        return self.head

    async def checkout(self, url: str, ref: str, **more: Any) -> Checkout:
        await asyncio.sleep(0)
        if (error := self.trouble(ref)) is not None:
            raise error
        revision = ref if ref in self.revisions else self.head
        if not revision:
            raise UnknownRef("there is no branch", where=url)
        return Checkout(self.revisions[revision], revision)

    def is_local(self, url: str) -> bool:
        return False


class Here:
    """Renders in this process."""

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    async def close(self) -> None:
        pass

    def depths(self) -> dict[str, int]:
        return {}

    def list_over_budget(self) -> dict[str, Any]:
        return {}


class Mortal(ForwardingCluster):
    """A cluster client that crashes the engine at its n-th call or injects faults, and counts writes.

    Watches and lists of informers do not count, because they change nothing.
    """

    def __init__(
        self, inner: Cluster, created_objects: dict[str, Manifest], point: int | None = None, *, after: bool = False
    ):
        super().__init__(inner)
        self._point, self._after, self.made = point, after, created_objects
        self.calls: list[str] = []
        self.is_dead = False
        self.fault: Callable[[str, bool], Exception | None] = lambda call, after: None

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if call.partition(" ")[0] in WRITE_METHODS]

    async def _send(self, call: Call, send: Send[T]) -> T:
        if call.method not in COUNTED:
            return await send()
        if self.is_dead:
            raise Crash
        call_text = f"{call.method} {_about(call)}" + (" for show" if call.is_dry_run else "")
        index = len(self.calls)
        self.calls.append(call_text)
        self._strike(call_text, index, after=False)
        answer = await send()
        if isinstance(answer, dict) and call.is_write:
            self.made.setdefault(answer["metadata"].get("uid", ""), answer)
        self._strike(call_text, index, after=True)
        return answer

    async def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        async for item in open_stream():
            yield item
            if call.method == "watch" and (error := self.fault("watch", True)) is not None:
                raise error

    def _strike(self, said: str, place: int, *, after: bool) -> None:
        if place == self._point and after == self._after:
            self.is_dead = True
            raise Crash
        if (error := self.fault(said, after)) is not None:
            raise error


def _about(call: Call) -> str:
    return f"{call.kind.kind}/{call.key.name if call.key else ''}"


Act = Callable[["Theatre"], Awaitable[None]]


async def nothing(theatre: Theatre) -> None:
    pass


@dataclass(frozen=True)
class Scene:
    """`before` is delivered by an engine that does not crash; then `act` runs, and the branch has `desired`."""

    desired: Sequence[Manifest]
    before: Sequence[Manifest] = ()
    act: Act = nothing
    policy: dict[str, Any] = field(default_factory=lambda: {"automated": {"prune": True, "selfHeal": True}})
    metadata: dict[str, Any] = field(default_factory=dict)
    status: str = "Synced"
    phase: str = "Succeeded"
    world: Callable[[Cluster], Awaitable[None]] = all_goes_well
    has_namespace: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    is_deleted: bool = False


@dataclass(frozen=True)
class Outcome:
    """The final state, which must not depend on crashes."""

    status: str
    phase: str
    revision: str
    standing: dict[str, str]
    runs: dict[str, int]  # how often each hook was created
    deployments: int


class Theatre:
    def __init__(self, cluster: Cluster, scene: Scene) -> None:
        self.cluster, self.scene, self.shelf = cluster, scene, Shelf()
        self.made: dict[str, Manifest] = {}
        self.is_prepared = False

    @contextlib.asynccontextmanager
    async def engine(self, point: int | None = None, *, after: bool = False) -> AsyncIterator[Running]:
        mortal = Mortal(self.cluster, self.made, point, after=after)
        engine = Engine(mortal, EngineOptions(Path("unused"), wave_delay_seconds=0.0), CONTROL, repositories=self.shelf)
        engine.render_pool = engine.reconciler.desired_states.renders._workers = Here()
        work = asyncio.create_task(engine.run())
        try:
            yield Running(self, mortal, engine, work)
        finally:
            mortal.is_dead = True
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def open(self) -> None:
        await furnish(self.cluster, CONTROL, *((NAMESPACE,) if self.scene.has_namespace else ()))
        if not self.scene.has_namespace:
            await self._without(ResourceKey("", "Namespace", "", NAMESPACE))
        metadata = {"name": "argocd-cm", "namespace": CONTROL}
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.scene.settings}
        await self.cluster.create(settings)
        self.shelf.push(self.scene.before or self.scene.desired)
        await self.cluster.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {"name": APP.name, "namespace": CONTROL, **self.scene.metadata},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": URL, "path": "app", "targetRevision": "main"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
                    "syncPolicy": self.scene.policy,
                },
            }
        )

    async def _without(self, key: ResourceKey) -> None:
        """Delete an object that an earlier test may have left on the server."""
        with contextlib.suppress(ClusterError):
            await self.cluster.delete(key)
        async with asyncio.timeout(HANG_SECONDS):
            while await self.cluster.get(key) is not None:
                await asyncio.sleep(0.05)

    async def prepare(self) -> None:
        """Run the scene up to the point from which the engine may crash."""
        await self.open()
        if self.scene.before:
            async with self.engine() as running:
                if "automated" not in self.scene.policy:
                    await self.ask()
                await running.until(lambda outcome: (outcome.status, outcome.phase) == ("Synced", "Succeeded"))
            self.shelf.push(self.scene.desired)
        await self.scene.act(self)
        self.made.clear()
        self.is_prepared = True

    async def ask(self, **sync: Any) -> None:
        """Request a manual sync."""
        await self.patch({"operation": {"sync": sync, "initiatedBy": {"username": "ann"}}})

    async def ask_of(self, name: str) -> None:
        await self.patch({"operation": {"sync": {}, "initiatedBy": {"username": "ann"}}}, APP._replace(name=name))

    async def patch(self, patch: Any, key: ResourceKey = APP) -> None:
        await self.cluster.patch(key, patch, kind_of_patch=PatchKind.MERGE)

    async def outcome(self) -> Outcome | None:
        """The outcome, or None while an operation is running."""
        app = await self.cluster.get(APP)
        if (app is None) != (self.scene.is_deleted and self.is_prepared):
            return None
        status = (app or {}).get("status") or {}
        state = status.get("operationState") or {}
        if "operation" in (app or {}):
            return None
        return Outcome(
            str((status.get("sync") or {}).get("status", "")),
            str(state.get("phase", "")),
            str((status.get("sync") or {}).get("revision", "")),
            await self.standing(),
            self.runs(),
            len(status.get("history") or ()),
        )

    async def standing(self) -> dict[str, str]:
        kinds = await self.cluster.kinds()
        objects: dict[str, str] = {}
        for kind in WATCHED:
            for item in (await self.cluster.list(kind)).items if kind in kinds else ():
                metadata = item["metadata"]
                if metadata.get("namespace", NAMESPACE) == NAMESPACE:
                    going = " going" if metadata.get("deletionTimestamp") else ""
                    finalizers = ",".join(metadata.get("finalizers") or ())
                    objects[f"{kind.kind}/{without_second(metadata['name'])}"] = (
                        f"{item.get('data') or ''}{finalizers}{going}"
                    )
        return objects

    def runs(self) -> dict[str, int]:
        """Number of created hooks by name; each uid counts once."""
        hooks = [hook for hook in self.made.values() if names.OPERATION in (hook["metadata"].get("annotations") or {})]
        return dict(Counter(without_second(hook["metadata"]["name"]) for hook in hooks))


def without_second(name: str) -> str:
    """A hook's generated name without the start time of its operation, which differs between runs."""
    return re.sub(r"-(presync|sync|postsync|syncfail|predelete|postdelete)-[0-9]{10}$", r"-\1", name)


@dataclass
class Running:
    theatre: Theatre
    cluster: Mortal
    engine: Engine
    work: asyncio.Task[None]

    async def until(self, holds: Callable[[Outcome], bool]) -> Outcome:
        """Wait for the outcome and that it is stable. Raises Crash if the engine crashed."""
        outcome, since = None, 0
        ends = asyncio.get_running_loop().time() + HANG_SECONDS
        ready = asyncio.ensure_future(self.engine.informers.wait_synced())
        await asyncio.wait([self.work, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        while asyncio.get_running_loop().time() < ends:
            if self.cluster.is_dead or self.work.done():
                raise Crash
            await self.theatre.scene.world(self.theatre.cluster)
            latest = await self.theatre.outcome()
            if latest is not None and holds(latest) and self.engine.queue.is_idle:
                since = since + 1 if latest == outcome else 0
                if since >= 3:
                    return latest
            else:
                since = 0
            outcome = latest
            await asyncio.sleep(0.003)
        app = await self.theatre.cluster.get(APP)
        raise AssertionError(f"it never came so far: {outcome}\n{(app or {}).get('status')}")

    async def rest(self) -> None:
        """Wait until all controllers are idle for a while."""
        quiet = 0
        while quiet < 10:
            await asyncio.sleep(0.005)
            quiet = quiet + 1 if self.engine.queue.is_idle else 0


Opened = Callable[[], contextlib.AbstractAsyncContextManager[Cluster]]


@contextlib.asynccontextmanager
async def theatre(scene: Scene, opened: Opened = EmbeddedCluster.open) -> AsyncIterator[Theatre]:
    async with opened() as cluster:
        stage = Theatre(cluster, scene)
        await stage.prepare()
        yield stage


async def straight(scene: Scene, opened: Opened = EmbeddedCluster.open) -> tuple[Outcome, list[str]]:
    """The outcome of a scene without crashes, and its calls."""
    async with theatre(scene, opened) as stage, stage.engine() as running:
        expected = (scene.status, scene.phase, "" if scene.is_deleted else stage.shelf.head)
        final_outcome = await running.until(
            lambda outcome: (outcome.status, outcome.phase, outcome.revision) == expected
        )
        return final_outcome, list(running.cluster.calls)


async def killed(
    scene: Scene, expected: Outcome, points: Sequence[tuple[int, bool]], opened: Opened = EmbeddedCluster.open
) -> Outcome:
    """Run engines that crash at the given points, one after another, then one that does not crash."""

    def is_as_wanted(outcome: Outcome) -> bool:
        more = {name: count for name, count in outcome.runs.items() if count > expected.runs.get(name, 0)}
        assert not more, f"hooks were made too often: {more}"  # cannot be corrected later
        return outcome == expected

    async with theatre(scene, opened) as stage:
        for point, is_after in points:
            async with stage.engine(point, after=is_after) as running:
                try:
                    return await running.until(is_as_wanted)
                except Crash:
                    assert running.cluster.is_dead, running.work.exception()
        async with stage.engine() as running:
            return await running.until(is_as_wanted)


__all__ = [
    "APP", "NAMESPACE", "Crash", "GroupKind", "Opened", "Outcome", "Running", "Scene", "Shelf", "Theatre",
    "key_of", "killed", "straight", "theatre",
]  # fmt: skip
