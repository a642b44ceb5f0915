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
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.hpa_algorithm import (
    HpaMetric,
    MetricUnavailable,
    build_current_metric,
    clamp_replicas,
    compute_desired_replicas,
    compute_usage_ratio,
    read_metric_values,
    read_metrics,
)
from argosy.sandbox.simulators.owner_references_and_marks import (
    HORIZONTAL_POD_AUTOSCALER,
    append_simulated_note,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.simulation_annotations import read_simulation_annotations, read_simulation_settings

WATCHED_TARGET_KINDS: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET)
TARGET_INDEX: Final = "simulators-scaled"
# k8s: 300; shorter, so that a rehearsal does not wait; the autoscaler's spec can override it
SCALE_DOWN_WINDOW_SECONDS: Final = 15.0
POLL_INTERVAL_SECONDS: Final = 15.0  # for targets of kinds that are not watched
METRICS_API_ERROR: Final = "the server could not find the requested resource (get pods.metrics.k8s.io)"
SCALING_LIMITED_CONDITIONS: Final = {
    "": ("False", "DesiredWithinRange", "the desired count is within the acceptable range"),
    "TooManyReplicas": ("True", "TooManyReplicas", "the desired replica count is more than the maximum replica count"),
    "TooFewReplicas": ("True", "TooFewReplicas", "the desired replica count is less than the minimum replica count"),
}
ConditionFields = tuple[str, str, str, str]


ABLE_TO_SCALE: Final[ConditionFields] = (
    "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale",
)  # fmt: skip


@dataclass(frozen=True)
class ScalingPlan:
    """The replica count for a target, and the conditions and metrics to report."""

    replicas: int
    conditions: Sequence[ConditionFields]
    metrics: Sequence[dict[str, Any]] = ()
    requeue_seconds: float | None = None
    deciding_metric: str = ""  # the metric that requires the most replicas


class HorizontalPodAutoscalerController:
    name = "simulated-autoscalers"

    def __init__(self) -> None:
        self._cache: InformerCache | None = None
        # (monotonic time, replicas); lost on restart, as in k8s
        self._recommendations: dict[ResourceKey, list[tuple[float, int]]] = {}
        self._events = EventRecorder("horizontal-pod-autoscaler")
        self.watches = (
            Watch(HORIZONTAL_POD_AUTOSCALER, enqueue_if_unmarked),
            *(Watch(kind, self._enqueue_autoscalers_of_target) for kind in WATCHED_TARGET_KINDS),
        )

    def _enqueue_autoscalers_of_target(self, target: Manifest) -> Iterable[ResourceKey]:
        if self._cache is not None:
            for autoscaler in self._cache.find(TARGET_INDEX, key_of(target)):
                yield key_of(autoscaler)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        if self._cache is not context.cache:
            context.cache.add_index(TARGET_INDEX, _index_by_target)
            self._cache = context.cache
        autoscaler = context.cache.get(key)
        if autoscaler is None or is_being_deleted(autoscaler) or is_simulated_by_other_addon(autoscaler):
            self._recommendations.pop(key, None)
            return None
        target_key = _read_target_key(autoscaler)
        target = context.cache.get(target_key) or await _fetch_unwatched_target(target_key, context)
        if target is None:
            problem = f'"{target_key.name}" not found'
            message = f"the HPA controller was unable to get the target's current scale: {target_key.kind} {problem}"
            await self._update_status(
                autoscaler, ScalingPlan(0, [("AbleToScale", "False", "FailedGetScale", message)]), 0, context
            )
            return Requeue(POLL_INTERVAL_SECONDS)
        current = int(target["spec"].get("replicas", 1))
        plan = self._compute_plan(key, autoscaler, target, current, context)
        is_rescaled = plan.replicas != current
        if is_rescaled:
            await context.cluster.patch(target_key, {"spec": {"replicas": plan.replicas}}, subresource="scale")
        await self._update_status(autoscaler, plan, current, context)
        waits = [plan.requeue_seconds, None if target_key.group_kind in WATCHED_TARGET_KINDS else POLL_INTERVAL_SECONDS]
        known_waits = [seconds for seconds in waits if seconds is not None]
        return Requeue(min(known_waits)) if known_waits else None

    def _compute_plan(
        self, key: ResourceKey, autoscaler: Manifest, target: Manifest, current: int, context: ControllerContext
    ) -> ScalingPlan:
        if not current:
            message = "scaling is disabled since the replica count of the target is zero"
            return ScalingPlan(current, [ABLE_TO_SCALE, ("ScalingActive", "False", "ScalingDisabled", message)])
        try:
            metrics = [
                (item, _compute_usage_ratio(item, autoscaler, target, current)) for item in read_metrics(autoscaler)
            ]
        except UserError as error:
            reason = error.reason if isinstance(error, MetricUnavailable) else "FailedGetResourceMetric"
            message = f"the HPA was unable to compute the replica count: {error}"
            return ScalingPlan(current, [ABLE_TO_SCALE, ("ScalingActive", "False", reason, message)])
        metric, ratio = max(metrics, key=lambda item: item[1])
        recommended, limit = clamp_replicas(compute_desired_replicas(ratio, current), autoscaler)
        replicas, wait = self._stabilize(key, autoscaler, recommended, current, context.clock.monotonic())
        success_message = f"the HPA was able to successfully calculate a replica count from {metric.description}"
        conditions = [
            _build_able_to_scale_condition(replicas, recommended, current),
            ("ScalingActive", "True", "ValidMetricFound", success_message),
            ("ScalingLimited", *SCALING_LIMITED_CONDITIONS[limit]),
        ]
        current_metrics = [build_current_metric(item, usage_ratio) for item, usage_ratio in metrics]
        return ScalingPlan(replicas, conditions, current_metrics, wait, metric.description)

    def _stabilize(
        self, key: ResourceKey, autoscaler: Manifest, recommended: int, current: int, now: float
    ) -> tuple[int, float | None]:
        """Apply the scale-down stabilization window; return the replicas and the seconds until the window ends.

        k8s: scales down only if no recommendation within the window was higher.
        """
        scale_down = (autoscaler["spec"].get("behavior") or {}).get("scaleDown") or {}
        scale_up = (autoscaler["spec"].get("behavior") or {}).get("scaleUp") or {}
        if (recommended > current and scale_up.get("selectPolicy") == "Disabled") or (
            recommended < current and scale_down.get("selectPolicy") == "Disabled"
        ):
            return current, None
        window_seconds = float(
            SCALE_DOWN_WINDOW_SECONDS
            if scale_down.get("stabilizationWindowSeconds") is None
            else scale_down["stabilizationWindowSeconds"]
        )
        recommendations = self._recommendations.get(key) or [(now, current)]
        previous = recommendations[-1][1]
        # the previous recommendation was valid until now
        recommendations = (
            [*recommendations, (now, previous), (now, recommended)] if previous != recommended else recommendations
        )
        recent = [entry for entry in recommendations if now - entry[0] < window_seconds] or [(now, recommended)]
        self._recommendations[key] = recent[-100:]
        if recommended >= current:
            return recommended, None
        highest = min(max(replicas for _, replicas in recent), current)
        if highest <= recommended:
            return recommended, None
        last = max(recommended_at for recommended_at, replicas in recent if replicas > recommended)
        return highest, max(window_seconds - (now - last), 0.0) + 0.01

    async def _update_status(
        self, autoscaler: Manifest, plan: ScalingPlan, current: int, context: ControllerContext
    ) -> None:
        now, is_rescaled = format_timestamp(context.clock.now()), plan.replicas != current
        new_status: dict[str, Any] = {
            "currentReplicas": current,
            "desiredReplicas": plan.replicas,
            "currentMetrics": list(plan.metrics) or None,
            "conditions": _conditions_to_wire(autoscaler, plan.conditions, now),
            "observedGeneration": autoscaler["metadata"].get("generation"),
        }
        if is_rescaled:
            new_status["lastScaleTime"] = now
        if not await update_status_if_changed(autoscaler, new_status, context.cluster):
            return
        if is_rescaled:
            scaling_reason = (
                "All metrics below target" if plan.replicas < current else f"{plan.deciding_metric} above target"
            )
            message = f"New size: {plan.replicas}; reason: {scaling_reason}"
            await self._events.record(autoscaler, [EventDraft("SuccessfulRescale", message)], context)
        for _, status, reason, message in plan.conditions:
            if status == "False" and reason.startswith("Failed"):
                await self._events.record(autoscaler, [EventDraft(reason, message, is_warning=True)], context)


def _compute_usage_ratio(metric: HpaMetric, autoscaler: Manifest, target: Manifest, current: int) -> Decimal:
    if read_simulation_settings([read_simulation_annotations(autoscaler)]).fault is not None:
        cause = f"unable to get metrics for resource {metric.name}"
        problem = f"{cause}: unable to fetch metrics from resource metrics API: {METRICS_API_ERROR}"
        raise MetricUnavailable(metric.kind, f"failed to get {metric.name} utilization: {problem}")
    template = ((target["spec"].get("template") or {}).get("spec")) or {}
    return compute_usage_ratio(metric, read_metric_values([autoscaler, target]), template, current)


def _build_able_to_scale_condition(stabilized: int, recommended: int, current: int) -> ConditionFields:
    if stabilized != current:
        message = f"the HPA controller was able to update the target scale to {stabilized}"
        return "AbleToScale", "True", "SucceededRescale", message
    if stabilized > recommended:
        message = "recent recommendations were higher than current one, applying the highest recent recommendation"
        return "AbleToScale", "True", "ScaleDownStabilized", message
    return "AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size"


def _conditions_to_wire(autoscaler: Manifest, conditions: Sequence[ConditionFields], now: str) -> list[dict[str, Any]]:
    previous_conditions = {
        condition["type"]: condition for condition in (autoscaler.get("status") or {}).get("conditions") or ()
    }
    wire_conditions = []
    for type_, status, reason, message in conditions:
        previous = previous_conditions.get(type_) or {}
        transitioned_at = previous.get("lastTransitionTime") if previous.get("status") == status else None
        fields = {"type": type_, "status": status, "reason": reason, "message": append_simulated_note(message)}
        wire_conditions.append({**fields, "lastTransitionTime": transitioned_at or now})
    return wire_conditions


def _read_target_key(autoscaler: Manifest) -> ResourceKey:
    reference = autoscaler["spec"]["scaleTargetRef"]
    group, _ = split_api_version(reference.get("apiVersion") or "apps/v1")
    return ResourceKey(group, reference["kind"], autoscaler["metadata"]["namespace"], reference["name"])


async def _fetch_unwatched_target(key: ResourceKey, context: ControllerContext) -> Manifest | None:
    if key.group_kind in WATCHED_TARGET_KINDS:
        return None
    try:
        return await context.cluster.get(key)
    except ClusterError:
        return None


def _index_by_target(manifest: Manifest) -> Iterator[Hashable]:
    if manifest["kind"] == HORIZONTAL_POD_AUTOSCALER.kind:
        yield _read_target_key(manifest)
