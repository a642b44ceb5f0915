"""Runs sync operations on an embedded cluster by calling `advance_operation` until the operation has ended.

It is a minimal reconciler: it reads the live objects before each call, and keeps the operation state that the real
reconciler would write.
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
    OperationPhase,
    OperationRequest,
    OperationState,
    ResourceResult,
    RetryStrategy,
    SyncRequest,
    read_application,
)
from argosy.gitops.application.step_results import AppComparison, Assessment, HealthStatus, Pair
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.health import builtin
from argosy.gitops.sync.client_side_apply_patch_builder import contains_desired
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.gitops.sync.operation_state_machine import AdvanceResult, advance_operation
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.sync_plan import OperationContext, plan_hook_tasks, plan_tasks
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of, list_desired_keys
from argosy.kube.resource_key import GroupKind, ResourceKey

NAMESPACE = "ml"
STARTED = "2026-01-01T00:00:00Z"
WIDGET = GroupKind("example.com", "Widget")
LISTED = [GroupKind("", "ConfigMap"), GroupKind("apps", "Deployment"), GroupKind("batch", "Job"), WIDGET]


def manifest(kind: str, name: str, *, api: str = "v1", wave: int | None = None, namespace: str = NAMESPACE,
             hook: str = "", policy: str = "", options: str = "", annotations: dict[str, str] | None = None,
             **parts: Any) -> Manifest:  # fmt: skip
    annotation_values = {
        names.TRACKING_ID: f"demo:{kind}/{name}",
        names.SYNC_WAVE: "" if wave is None else str(wave),
        names.HOOK: hook,
        names.HOOK_DELETE_POLICY: policy,
        names.SYNC_OPTIONS: options,
        **(annotations or {}),
    }
    metadata: dict[str, Any] = {
        "name": name,
        "annotations": {key: text for key, text in annotation_values.items() if text},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def config(name: str, value: str = "1", **more: Any) -> Manifest:
    return manifest("ConfigMap", name, data={"value": value}, **more)


def job(name: str, **more: Any) -> Manifest:
    """Return a Job that the test finishes. k8s: the Job controller ignores Jobs with another managedBy."""
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
    """Assess health by the built-in checks; the health of a Widget is its field `health`."""
    return [_assessment(item) for item in manifests]


def _assessment(live: Manifest) -> Assessment | None:
    if live["kind"] == "Widget" and live.get("health"):
        return Assessment(HealthStatus(live["health"]), live.get("message", ""))
    return builtin.assess_builtin(live)


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
    for job_manifest in (await cluster.list(GroupKind("batch", "Job"))).items:
        if not (job_manifest.get("status") or {}).get("conditions") and only in job_manifest["metadata"]["name"]:
            await set_status(cluster, job_manifest, {**times, "conditions": conditions})


async def roll_out(cluster: Cluster) -> None:
    for deployment in (await cluster.list(GroupKind("apps", "Deployment"))).items:
        generation = deployment["metadata"].get("generation", 1)
        status = {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
                  "readyReplicas": 1}  # fmt: skip
        if (deployment.get("status") or {}).get("observedGeneration") != generation:
            await set_status(cluster, deployment, status)


async def set_status(cluster: Cluster, live: Manifest, status: dict[str, Any]) -> None:
    """Patch the status of an object that was listed; the engine may have deleted the object since."""
    try:
        await cluster.patch(key_of(live), {"status": status}, subresource="status")
    except ClusterError as error:
        if error.code != 404:
            raise


@dataclass
class Stage:
    cluster: Cluster
    desired: list[Manifest] = field(default_factory=list)
    request: SyncRequest = field(default_factory=SyncRequest)
    options: tuple[str, ...] = ()
    settings: SyncSettings = field(default_factory=lambda: SyncSettings(wave_delay_seconds=0))
    retry: RetryStrategy = field(default_factory=RetryStrategy)
    may_delete: Callable[[Manifest], str] = lambda _: ""
    permitted: Callable[[ResourceKey, bool], str] = lambda *_: ""
    world: World = all_goes_well
    judge: Judge = field(default=judge)
    annotations: dict[str, str] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    engine: Cluster | None = None  # the engine's cluster client, if it differs from the test's
    lags: bool = False  # the engine sees the live state of the previous call
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

    async def step(self) -> AdvanceResult:
        """Advance the operation once with the current live state, and keep the resulting state."""
        state = self.state or self.begin()
        options = SyncOptions.from_lists(self.options, self.request.options)
        occasion = OperationContext(self.app, "0123456789abcdef", state.started, state.retries)
        live = await self.live()
        other_live = await self._beside(live, occasion)
        engine_view, self.seen = (
            (self.seen or (live, other_live)) if self.lags else (live, other_live),
            (live, other_live),
        )
        tasks = plan_tasks(self.compared(engine_view[0]), self.request, occasion, options, engine_view[1])
        answer = await advance_operation(
            state,
            tasks,
            self.app,
            options,
            cluster=self.engine or self.cluster,
            assess_all=self.judge,
            settings=self.settings,
            now=lambda: self.time,
            find_refusal=self.may_delete,
            check_permission=self.permitted,
            **self.more,
        )
        self.state = answer.state
        return answer

    async def finish(self, most: int = 40) -> OperationState:
        """Advance until the operation has ended; run `world` between the calls."""
        for _ in range(most):
            answer = await self.step()
            if answer.state.phase.is_over:
                return answer.state
            self.time += timedelta(seconds=max(answer.wait or 0.0, 0.001))
            await self.world(self.cluster)
            await asyncio.sleep(0)  # let the controllers of the cluster run
        raise AssertionError(f"not over after {most} calls: {self.state}")

    async def until(self, message: str, most: int = 40) -> None:
        for _ in range(most):
            if (await self.step()).state.message == message:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"never {message!r}: {self.state}")

    # -- desired and live state -----------------------------------------------------------------------------------

    def compared(self, live: dict[ResourceKey, Manifest]) -> AppComparison:
        pairs = []
        objects = [item for item in self.desired if not is_hook(item)]
        ordinary = dict(zip(list_desired_keys(objects), objects, strict=True))
        for key in sorted(ordinary.keys() | {key for key, item in live.items() if not is_hook(item)}):
            desired, live_manifest = ordinary.get(key), live.get(key)
            differs = desired is None or live_manifest is None or not contains_desired(live_manifest, desired)
            pairs.append(Pair(key, copy.deepcopy(desired), live_manifest, differs))
        return AppComparison(pairs, [item for item in self.desired if is_hook(item)])

    async def live(self) -> dict[ResourceKey, Manifest]:
        live_objects = {}
        for kind in LISTED:
            try:
                items = (await self.cluster.list(kind)).items
            except ClusterError:
                continue
            live_objects |= {key_of(item): item for item in items if _tracking(item).startswith("demo:")}
        for item in self.desired:
            if (item["metadata"].get("name")) and (there := await self.get(key_of(item))):
                live_objects[key_of(item)] = there
        return live_objects

    async def _beside(
        self, live: dict[ResourceKey, Manifest], occasion: OperationContext
    ) -> dict[ResourceKey, Manifest]:
        space = ResourceKey("", "Namespace", "", NAMESPACE)
        keys = [space, *(task.key for task in plan_hook_tasks(self.compared(live).hooks, occasion, {}))]
        return live | {key: there for key in keys if (there := await self.get(key))}

    async def get(self, key: ResourceKey) -> Manifest | None:
        try:
            return await self.cluster.get(key)
        except ClusterError:
            return None

    async def names(self, kind: GroupKind = LISTED[0]) -> list[str]:
        """Return the names of objects that are not being deleted."""
        items = (await self.cluster.list(kind, namespace=NAMESPACE)).items
        return sorted(item["metadata"]["name"] for item in items if not item["metadata"].get("deletionTimestamp"))

    def again(self, *desired: Manifest, started: str = "2026-01-01T01:00:00Z", **changes: Any) -> Stage:
        """Start the next operation on the same cluster."""
        next_stage = replace(self, desired=list(desired) or self.desired, **changes)
        next_stage.state, next_stage.seen = None, None
        next_stage.time = self.time + timedelta(hours=1)
        next_stage.begin(started)
        return next_stage


def _tracking(live: Manifest) -> str:
    return str((live["metadata"].get("annotations") or {}).get(names.TRACKING_ID, ""))


def summarize_results(state: OperationState) -> dict[str, tuple[str, str, str]]:
    """Return result code, hook phase and message by `KIND/NAME`, or by `KIND/NAME@PHASE` for hooks."""
    return {
        _place(result): (result.result_code or "", result.hook_phase or "", result.message) for result in state.results
    }


def _place(result: ResourceResult) -> str:
    return f"{result.key.kind}/{result.key.name}" + (f"@{result.phase}" if result.hook else "")


def ends(state: OperationState) -> tuple[OperationPhase, str]:
    return state.phase, state.message
