"""Runs syncs: desired manifests, an embedded cluster, and calls of `advance` until the operation has ended.

It does what the reconciler does, in the simplest way: it reads the live objects before each call, and keeps the
operation state as it would be written.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from argosy import annotations as names
from argosy.errors import ClusterError
from argosy.gitops.application import (
    Application,
    OperationRequest,
    OperationState,
    Progress,
    Result,
    Retry,
    SyncRequest,
    read_application,
)
from argosy.gitops.application.hooks import is_hook
from argosy.gitops.application.step_results import Assessment, Comparison, Health, Pair
from argosy.gitops.health import builtin
from argosy.gitops.sync.advance import Advanced, advance
from argosy.gitops.sync.client_side_patch import holds
from argosy.gitops.sync.operation_terms import SyncSettings
from argosy.gitops.sync.options import SyncOptions
from argosy.gitops.sync.sync_plan import Occasion, hook_tasks, plan
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

NAMESPACE = "ml"
STARTED = "2026-01-01T00:00:00Z"
WIDGET = GroupKind("example.com", "Widget")
LISTED = [GroupKind("", "ConfigMap"), GroupKind("apps", "Deployment"), GroupKind("batch", "Job"), WIDGET]


def manifest(kind: str, name: str, *, api: str = "v1", wave: int | None = None, namespace: str = NAMESPACE,
             hook: str = "", policy: str = "", options: str = "", annotations: dict[str, str] | None = None,
             **parts: Any) -> Manifest:  # fmt: skip
    given = {
        names.TRACKING_ID: f"demo:{kind}/{name}",
        names.SYNC_WAVE: "" if wave is None else str(wave),
        names.HOOK: hook,
        names.HOOK_DELETE_POLICY: policy,
        names.SYNC_OPTIONS: options,
        **(annotations or {}),
    }
    metadata: dict[str, Any] = {"name": name, "annotations": {each: text for each, text in given.items() if text}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def config(name: str, value: str = "1", **more: Any) -> Manifest:
    return manifest("ConfigMap", name, data={"value": value}, **more)


def job(name: str, **more: Any) -> Manifest:
    """A Job that the test finishes. k8s: the Job controller ignores Jobs with another managedBy."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}
    spec = {"managedBy": "example.com/hands", "template": {"spec": pod}}
    return manifest("Job", name, api="batch/v1", spec=spec, **more)


def deployment(name: str, image: str = "web:1", label: str = "web", **more: Any) -> Manifest:
    spec = {
        "selector": {"matchLabels": {"app": label}},
        "template": {
            "metadata": {"labels": {"app": label}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        },
    }
    return manifest("Deployment", name, api="apps/v1", spec=spec, **more)


def definition() -> Manifest:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
    }
    api = "apiextensions.k8s.io/v1"
    return manifest("CustomResourceDefinition", "widgets.example.com", api=api, namespace="", spec=spec)


async def judge(manifests: Sequence[Manifest]) -> list[Assessment | None]:
    """Health by the rules for built-in kinds; a Widget has the health in its field `health`."""
    return [_assessment(each) for each in manifests]


def _assessment(each: Manifest) -> Assessment | None:
    if each["kind"] == "Widget" and each.get("health"):
        return Assessment(Health(each["health"]), each.get("message", ""))
    return builtin.judge(each)


World = Callable[[Cluster], Awaitable[None]]
Judge = Callable[[Sequence[Manifest]], Awaitable[list[Assessment | None]]]


async def all_goes_well(cluster: Cluster) -> None:
    """Let Jobs complete and Deployments become available."""
    await finish_jobs(cluster)
    await roll_out(cluster)


async def finish_jobs(cluster: Cluster, *, well: bool = True, only: str = "") -> None:
    kind = "Complete" if well else "Failed"
    first = "SuccessCriteriaMet" if well else "FailureTarget"  # k8s: must precede the final condition
    conditions = [{"type": first, "status": "True"}, {"type": kind, "status": "True", "message": f"{kind} it is"}]
    times = {"startTime": STARTED} | ({"completionTime": STARTED} if well else {})
    for each in (await cluster.list(GroupKind("batch", "Job"))).items:
        if not (each.get("status") or {}).get("conditions") and only in each["metadata"]["name"]:
            status = {"status": {**times, "conditions": conditions}}
            await cluster.patch(key_of(each), status, subresource="status")


async def roll_out(cluster: Cluster) -> None:
    for each in (await cluster.list(GroupKind("apps", "Deployment"))).items:
        generation = each["metadata"].get("generation", 1)
        status = {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
                  "readyReplicas": 1}  # fmt: skip
        if (each.get("status") or {}).get("observedGeneration") != generation:
            await cluster.patch(key_of(each), {"status": status}, subresource="status")


@dataclass
class Stage:
    cluster: Cluster
    desired: list[Manifest] = field(default_factory=list)
    request: SyncRequest = field(default_factory=SyncRequest)
    options: tuple[str, ...] = ()
    settings: SyncSettings = field(default_factory=lambda: SyncSettings(wave_delay=0))
    retry: Retry = field(default_factory=Retry)
    may_delete: Callable[[Manifest], str] = lambda _: ""
    permitted: Callable[[ResourceKey, bool], str] = lambda *_: ""
    world: World = all_goes_well
    judge: Judge = field(default=judge)
    annotations: dict[str, str] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    engine: Cluster | None = None  # the engine's cluster client, if it differs from the test's
    lags: bool = False  # the engine sees the live state of its previous call
    seen: tuple[dict[ResourceKey, Manifest], dict[ResourceKey, Manifest]] | None = None
    state: OperationState | None = None
    time: datetime = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)

    @property
    def app(self) -> Application:
        return read_application(
            {
                "metadata": {"name": "demo", "namespace": "argocd", "uid": "u", "annotations": self.annotations},
                "spec": {"destination": {"namespace": NAMESPACE}, "syncPolicy": self.policy},
            }
        )

    def begin(self, started: str = STARTED) -> OperationState:
        self.state = OperationState(OperationRequest(self.request, retry=self.retry), started=started)
        return self.state

    async def step(self) -> Advanced:
        """Make one call with the current live state; keep its result as if it were written."""
        state = self.state or self.begin()
        options = SyncOptions.of(self.options, self.request.options)
        occasion = Occasion(self.app, "0123456789abcdef", state.started, state.retries)
        live = await self.live()
        beside = await self._beside(live, occasion)
        known, self.seen = (self.seen or (live, beside)) if self.lags else (live, beside), (live, beside)
        tasks = plan(self.compared(known[0]), self.request, occasion, options, known[1])
        answer = await advance(
            state, tasks, self.app, options, cluster=self.engine or self.cluster, assess_all=self.judge,
            settings=self.settings, now=lambda: self.time, may_delete=self.may_delete, permitted=self.permitted,
            **self.more,
        )  # fmt: skip
        self.state = answer.state
        return answer

    async def finish(self, most: int = 40) -> OperationState:
        """Call until the operation has ended; other actions run between calls."""
        for _ in range(most):
            answer = await self.step()
            if answer.state.progress.is_over:
                return answer.state
            self.time += timedelta(seconds=max(answer.wait or 0.0, 0.001))
            await self.world(self.cluster)
            await asyncio.sleep(0)  # lets the controllers of the cluster run
        raise AssertionError(f"not over after {most} calls: {self.state}")

    async def until(self, message: str, most: int = 40) -> None:
        for _ in range(most):
            if (await self.step()).state.message == message:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"never {message!r}: {self.state}")

    # -- what the reconciler knows --------------------------------------------------------------------------------

    def compared(self, live: dict[ResourceKey, Manifest]) -> Comparison:
        pairs = []
        ordinary = {key_of(each): each for each in self.desired if not is_hook(each)}
        for key in sorted(ordinary.keys() | {key for key, each in live.items() if not is_hook(each)}):
            wanted, found = ordinary.get(key), live.get(key)
            differs = wanted is None or found is None or not holds(found, wanted)
            pairs.append(Pair(key, copy.deepcopy(wanted), found, differs))
        return Comparison(pairs, [each for each in self.desired if is_hook(each)])

    async def live(self) -> dict[ResourceKey, Manifest]:
        found = {}
        for kind in LISTED:
            try:
                items = (await self.cluster.list(kind)).items
            except ClusterError:
                continue
            found |= {key_of(each): each for each in items if _tracking(each).startswith("demo:")}
        for each in self.desired:
            if (each["metadata"].get("name")) and (there := await self.get(key_of(each))):
                found[key_of(each)] = there
        return found

    async def _beside(self, live: dict[ResourceKey, Manifest], occasion: Occasion) -> dict[ResourceKey, Manifest]:
        space = ResourceKey("", "Namespace", "", NAMESPACE)
        keys = [space, *(task.key for task in hook_tasks(self.compared(live).hooks, occasion, {}))]
        return live | {key: there for key in keys if (there := await self.get(key))}

    async def get(self, key: ResourceKey) -> Manifest | None:
        try:
            return await self.cluster.get(key)
        except ClusterError:
            return None

    async def names(self, kind: GroupKind = LISTED[0]) -> list[str]:
        """Names of objects that are not being deleted."""
        items = (await self.cluster.list(kind, namespace=NAMESPACE)).items
        return sorted(each["metadata"]["name"] for each in items if not each["metadata"].get("deletionTimestamp"))

    def again(self, *desired: Manifest, started: str = "2026-01-01T01:00:00Z", **changes: Any) -> Stage:
        """Start the next operation on the same cluster."""
        made = replace(self, desired=list(desired) or self.desired, **changes)
        made.state, made.seen = None, None
        made.time = self.time + timedelta(hours=1)
        made.begin(started)
        return made


def _tracking(each: Manifest) -> str:
    return str((each["metadata"].get("annotations") or {}).get(names.TRACKING_ID, ""))


def told(state: OperationState) -> dict[str, tuple[str, str, str]]:
    """Results by `KIND/NAME`: outcome, progress and message."""
    return {_place(each): (each.outcome or "", each.progress or "", each.message) for each in state.results}


def _place(result: Result) -> str:
    return f"{result.key.kind}/{result.key.name}" + (f"@{result.phase}" if result.hook else "")


def ends(state: OperationState) -> tuple[Progress, str]:
    return state.progress, state.message
