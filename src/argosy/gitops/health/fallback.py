"""Assesses custom resources without a rule by the conventions of their status, similar to kstatus.

In: a live manifest. Out: an Assessment whose message starts with `fallback: `, or None for other kinds.
Never: raises; a field of the wrong type counts as absent.

The first match decides:
1. No status, or an empty one: Healthy. Many kinds never have one, and would block their wave forever.
2. `status.observedGeneration` behind `metadata.generation`: Progressing.
3. The conditions Stalled (Degraded), Reconciling (Progressing), Failed (Degraded), Suspended (Suspended), if True.
4. Succeeded, Complete or Completed, if True: Healthy.
5. The first of Ready, Available, Succeeded, Complete, Completed that exists: True is Healthy. False or Unknown is
   Progressing, because most conditions start as False. False with a reason that names a failure (`InstallFailed`,
   `DeadlineExceeded`) is Degraded. A phase of failure or suspension takes precedence over both.
   A condition whose own `observedGeneration` is behind `metadata.generation` is Progressing.
6. The word in `status.phase`, else in `status.state`, case-insensitive.
7. No known field, or an unknown word: Healthy, and the message says so. Without the fallback, a sync would not wait
   for such an object either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version

# k8s: the groups of built-in kinds and aggregated APIs. Other groups below k8s.io, such as
# gateway.networking.k8s.io, are custom resources.
_KUBERNETES_GROUP_PREFIXES: Final = """
    admission admissionregistration apiextensions apiregistration authentication authorization certificates
    coordination custom.metrics discovery events external.metrics flowcontrol.apiserver imagepolicy
    internal.apiserver metrics networking node rbac.authorization resource scheduling storage storagemigration
"""
KUBERNETES_GROUPS: Final = frozenset(f"{group}.k8s.io" for group in _KUBERNETES_GROUP_PREFIXES.split())
_HEALTH_BY_TRUE_CONDITION: Final = {
    "Stalled": HealthStatus.DEGRADED,
    "Reconciling": HealthStatus.PROGRESSING,
    "Failed": HealthStatus.DEGRADED,
    "Suspended": HealthStatus.SUSPENDED,
}
_FINISHED_CONDITIONS: Final = ("Succeeded", "Complete", "Completed")
_DECIDING_CONDITIONS: Final = ("Ready", "Available", *_FINISHED_CONDITIONS)
_FAILURE_REASON: Final = re.compile(
    r"^err|fail|error|invalid|time[d_-]?out|deadline|back[_-]?off|crash|denied|forbidden|unauthorized|rejected|abort",
    re.IGNORECASE,
)
_PHASES_BY_HEALTH: Final = {
    HealthStatus.HEALTHY: """
        ready running active available bound succeeded success successful complete completed done finished healthy
        deployed established installed online synced ok
    """,
    HealthStatus.DEGRADED: """
        failed failure error errored degraded unhealthy invalid lost crashed crashloopbackoff aborted rejected
        timedout timeout broken
    """,
    HealthStatus.PROGRESSING: """
        pending creating provisioning initializing initialising init starting started deploying installing updating
        upgrading scaling progressing inprogress reconciling processing queued waiting restarting resuming new
        preparing building binding deleting terminating stopping unknown
    """,
    HealthStatus.SUSPENDED: "suspended paused stopped hibernated",
}
_HEALTH_BY_PHASE: Final = {phase: health for health, phases in _PHASES_BY_HEALTH.items() for phase in phases.split()}


def is_custom_resource_group(group: str) -> bool:
    """k8s: the group of a custom resource must contain a dot, so `apps` and the core group are built in."""
    return "." in group and group not in KUBERNETES_GROUPS


def assess_custom_resource(manifest: Manifest) -> Assessment | None:
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    # argo: an Application has no health unless its check is enabled.
    if not is_custom_resource_group(group) or (group, manifest.get("kind")) == ("argoproj.io", "Application"):
        return None
    health, message = _assess_status(manifest)
    return Assessment(health, f"fallback: {message}", f"fallback {group}/{manifest.get('kind')}")


def _assess_status(manifest: Manifest) -> tuple[HealthStatus, str]:
    status = _as_mapping(manifest.get("status"))
    if not status:
        return HealthStatus.HEALTHY, "no status"
    generation = _as_int(_as_mapping(manifest.get("metadata")).get("generation"))
    if _is_generation_behind(status, generation):
        return HealthStatus.PROGRESSING, f"waiting for the controller to observe generation {generation}"
    return (
        _assess_conditions(status, generation)
        or _assess_phase(status)
        or (HealthStatus.HEALTHY, "no known field in the status")
    )


def _assess_conditions(status: Mapping[str, Any], generation: int) -> tuple[HealthStatus, str] | None:
    conditions = _conditions_by_type(status)
    for condition_type, health in _HEALTH_BY_TRUE_CONDITION.items():
        if _has_status(conditions.get(condition_type), "True"):
            return health, _render_condition(conditions[condition_type])
    for condition_type in _FINISHED_CONDITIONS:
        if _has_status(conditions.get(condition_type), "True") and not _is_generation_behind(
            conditions[condition_type], generation
        ):
            return HealthStatus.HEALTHY, _render_condition(conditions[condition_type])
    condition = next(
        (conditions[condition_type] for condition_type in _DECIDING_CONDITIONS if condition_type in conditions), None
    )
    return None if condition is None else _assess_condition(condition, status, generation)


def _assess_condition(
    condition: Mapping[str, Any], status: Mapping[str, Any], generation: int
) -> tuple[HealthStatus, str]:
    summary = _render_condition(condition)
    if _is_generation_behind(condition, generation):
        return HealthStatus.PROGRESSING, f"waiting for generation {generation}; before that, {summary}"
    if _has_status(condition, "True"):
        return HealthStatus.HEALTHY, summary
    phase = _assess_phase(status)
    if phase and phase[0] in (HealthStatus.DEGRADED, HealthStatus.SUSPENDED):
        return phase
    failed = _has_status(condition, "False") and _FAILURE_REASON.search(_as_text(condition.get("reason")))
    return (HealthStatus.DEGRADED if failed else HealthStatus.PROGRESSING), summary


def _assess_phase(status: Mapping[str, Any]) -> tuple[HealthStatus, str] | None:
    for field in ("phase", "state"):
        if phase := _as_text(status.get(field)):
            health = _HEALTH_BY_PHASE.get(re.sub(r"[\s_-]", "", phase).lower())
            if health is None:
                return HealthStatus.HEALTHY, f"{field} is {phase}, which is not a known phase"
            detail = _as_text(status.get("message"))
            return health, f"{field} is {phase}: {detail}" if detail else f"{field} is {phase}"
    return None


def _conditions_by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the conditions by type; the first of each type counts."""
    entries = status.get("conditions")
    conditions: dict[str, Mapping[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (condition_type := _as_text(entry.get("type"))):
            conditions.setdefault(condition_type, entry)
    return conditions


def _render_condition(condition: Mapping[str, Any]) -> str:
    """Render `Ready=False (Pending): waiting for a volume`, without missing parts."""
    status, reason, message = (_as_text(condition.get(name)) for name in ("status", "reason", "message"))
    summary = f"{_as_text(condition.get('type'))}={status or 'Unknown'}"
    if reason:
        summary += f" ({reason})"
    return f"{summary}: {message}" if message else summary


def _has_status(condition: Mapping[str, Any] | None, status: str) -> bool:
    return condition is not None and condition.get("status") == status


def _is_generation_behind(holder: Mapping[str, Any], generation: int) -> bool:
    observed = holder.get("observedGeneration")
    return isinstance(observed, int | float) and not isinstance(observed, bool) and observed < generation


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""
