"""Simulates the HorizontalPodAutoscaler controller: metric values from an annotation decide the replica count.

In: the key of an autoscaler. Out: replicas of its target, and its status. Never: measures a metric; scales an object
that is not its target.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from argosy.errors import ClusterError, UserError
from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.constants import (
    AUTOSCALER,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    is_dying,
    is_played_by_others,
    told,
    unmarked,
)
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.fault_injection import asked, read_wishes
from argosy.sandbox.simulators.hpa_algorithm import (
    Metric,
    Unmeasured,
    bounded,
    current_metric,
    measured,
    metrics_of,
    proposed,
    ratio_of,
)
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import keep_status, patient

SCALED: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET)
INDEX: Final = "simulators-scaled"
# k8s: 300; shorter, so that a rehearsal does not wait; the autoscaler's spec can override it
WINDOW: Final = 15.0
LOOK_AGAIN: Final = 15.0  # for targets of kinds that are not watched
NO_METRICS: Final = "the server could not find the requested resource (get pods.metrics.k8s.io)"
LIMITED: Final = {
    "": ("False", "DesiredWithinRange", "the desired count is within the acceptable range"),
    "TooManyReplicas": ("True", "TooManyReplicas", "the desired replica count is more than the maximum replica count"),
    "TooFewReplicas": ("True", "TooFewReplicas", "the desired replica count is less than the minimum replica count"),
}
Condition = tuple[str, str, str, str]


ABLE: Final[Condition] = (
    "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """The replica count for a target, and the conditions and metrics to report."""

    wanted: int
    conditions: Sequence[Condition]
    metrics: Sequence[dict[str, Any]] = ()
    wait: float | None = None
    cause: str = ""  # the metric that requires the most replicas


class Autoscalers:
    name = "simulated-autoscalers"

    def __init__(self) -> None:
        self._cache: Cache | None = None
        # (monotonic time, replicas); lost on restart, as in k8s
        self._wanted: dict[ResourceKey, list[tuple[float, int]]] = {}
        self._events = Recorder("horizontal-pod-autoscaler")
        self.watches = (Watch(AUTOSCALER, unmarked), *(Watch(kind, self._scaling) for kind in SCALED))

    def _scaling(self, target: Manifest) -> Iterable[ResourceKey]:
        if self._cache is not None:
            for each in self._cache.find(INDEX, key_of(target)):
                yield key_of(each)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        if self._cache is not context.cache:
            context.cache.index(INDEX, _targets)
            self._cache = context.cache
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            self._wanted.pop(key, None)
            return None
        target_key = _target_of(live)
        target = context.cache.get(target_key) or await _found(target_key, context)
        if target is None:
            what = f'"{target_key.name}" not found'
            message = f"the HPA controller was unable to get the target's current scale: {target_key.kind} {what}"
            await self._report(live, Plan(0, [("AbleToScale", "False", "FailedGetScale", message)]), 0, context)
            return Requeue(LOOK_AGAIN)
        current = int(target["spec"].get("replicas", 1))
        plan = self._plan(key, live, target, current, context)
        is_rescaled = plan.wanted != current
        if is_rescaled:
            await context.cluster.patch(target_key, {"spec": {"replicas": plan.wanted}}, subresource="scale")
        await self._report(live, plan, current, context)
        waits = [plan.wait, None if target_key.group_kind in SCALED else LOOK_AGAIN]
        found = [each for each in waits if each is not None]
        return Requeue(min(found)) if found else None

    def _plan(self, key: ResourceKey, live: Manifest, target: Manifest, current: int, context: Context) -> Plan:
        if not current:
            message = "scaling is disabled since the replica count of the target is zero"
            return Plan(current, [ABLE, ("ScalingActive", "False", "ScalingDisabled", message)])
        try:
            metrics = [(each, _ratio(each, live, target, current)) for each in metrics_of(live)]
        except UserError as error:
            reason = error.reason if isinstance(error, Unmeasured) else "FailedGetResourceMetric"
            message = f"the HPA was unable to compute the replica count: {error}"
            return Plan(current, [ABLE, ("ScalingActive", "False", reason, message)])
        metric, ratio = max(metrics, key=lambda each: each[1])
        wanted, limit = bounded(proposed(ratio, current), live)
        settled, wait = self._settled(key, live, wanted, current, context.clock.monotonic())
        counted = f"the HPA was able to successfully calculate a replica count from {metric.shown}"
        conditions = [
            _able(settled, wanted, current),
            ("ScalingActive", "True", "ValidMetricFound", counted),
            ("ScalingLimited", *LIMITED[limit]),
        ]
        shown = [current_metric(each, share) for each, share in metrics]
        return Plan(settled, conditions, shown, wait, metric.shown)

    def _settled(
        self, key: ResourceKey, live: Manifest, wanted: int, current: int, now: float
    ) -> tuple[int, float | None]:
        """Apply the scale-down stabilization window; return the replicas and the seconds until the window ends.

        k8s: scales down only if no recommendation within the window was higher.
        """
        down = (live["spec"].get("behavior") or {}).get("scaleDown") or {}
        up = (live["spec"].get("behavior") or {}).get("scaleUp") or {}
        if (wanted > current and up.get("selectPolicy") == "Disabled") or (
            wanted < current and down.get("selectPolicy") == "Disabled"
        ):
            return current, None
        window = float(WINDOW if down.get("stabilizationWindowSeconds") is None else down["stabilizationWindowSeconds"])
        known = self._wanted.get(key) or [(now, current)]
        before = known[-1][1]
        # the previous recommendation was valid until now
        known = [*known, (now, before), (now, wanted)] if before != wanted else known
        recent = [each for each in known if now - each[0] < window] or [(now, wanted)]
        self._wanted[key] = recent[-100:]
        if wanted >= current:
            return wanted, None
        most = min(max(many for _, many in recent), current)
        if most <= wanted:
            return wanted, None
        last = max(when for when, many in recent if many > wanted)
        return most, max(window - (now - last), 0.0) + 0.01

    async def _report(self, live: Manifest, plan: Plan, current: int, context: Context) -> None:
        now, is_rescaled = stamp(context.clock.now()), plan.wanted != current
        wanted: dict[str, Any] = {
            "currentReplicas": current,
            "desiredReplicas": plan.wanted,
            "currentMetrics": list(plan.metrics) or None,
            "conditions": _dated(live, plan.conditions, now),
            "observedGeneration": live["metadata"].get("generation"),
        }
        if is_rescaled:
            wanted["lastScaleTime"] = now
        if not await keep_status(live, wanted, context.cluster):
            return
        if is_rescaled:
            why = "All metrics below target" if plan.wanted < current else f"{plan.cause} above target"
            message = f"New size: {plan.wanted}; reason: {why}"
            await self._events.tell(live, [Happening("SuccessfulRescale", message)], context)
        for _, status, reason, message in plan.conditions:
            if status == "False" and reason.startswith("Failed"):
                await self._events.tell(live, [Happening(reason, message, is_warning=True)], context)


def _ratio(metric: Metric, live: Manifest, target: Manifest, current: int) -> Decimal:
    if read_wishes([asked(live)]).fail is not None:
        why = f"unable to get metrics for resource {metric.name}"
        problem = f"{why}: unable to fetch metrics from resource metrics API: {NO_METRICS}"
        raise Unmeasured(metric.kind, f"failed to get {metric.name} utilization: {problem}")
    template = ((target["spec"].get("template") or {}).get("spec")) or {}
    return ratio_of(metric, measured([live, target]), template, current)


def _able(settled: int, wanted: int, current: int) -> Condition:
    if settled != current:
        message = f"the HPA controller was able to update the target scale to {settled}"
        return "AbleToScale", "True", "SucceededRescale", message
    if settled > wanted:
        message = "recent recommendations were higher than current one, applying the highest recent recommendation"
        return "AbleToScale", "True", "ScaleDownStabilized", message
    return "AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size"


def _dated(live: Manifest, conditions: Sequence[Condition], now: str) -> list[dict[str, Any]]:
    known = {each["type"]: each for each in (live.get("status") or {}).get("conditions") or ()}
    found = []
    for type_, status, reason, message in conditions:
        before = known.get(type_) or {}
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        said = {"type": type_, "status": status, "reason": reason, "message": told(message)}
        found.append({**said, "lastTransitionTime": since or now})
    return found


def _target_of(live: Manifest) -> ResourceKey:
    reference = live["spec"]["scaleTargetRef"]
    group, _ = split_api_version(reference.get("apiVersion") or "apps/v1")
    return ResourceKey(group, reference["kind"], live["metadata"]["namespace"], reference["name"])


async def _found(key: ResourceKey, context: Context) -> Manifest | None:
    if key.group_kind in SCALED:
        return None
    try:
        return await context.cluster.get(key)
    except ClusterError:
        return None


def _targets(manifest: Manifest) -> Iterator[Hashable]:
    if manifest["kind"] == AUTOSCALER.kind:
        yield _target_of(manifest)
