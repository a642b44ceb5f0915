"""Aggregates the health of an Application from its resources.

In: managed resources with their assessments. Out: the worst health, the resources that caused it, the rules that
failed. Never: lets a failed rule affect more than its own object, which is Unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.annotations import IGNORE_HEALTHCHECK
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application.sync_annotations import get_annotation, is_hook, is_skipped
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

MAX_NAMED_CAUSES: Final = 3  # argo: this many are named, the rest is counted


@dataclass(frozen=True, slots=True)
class ResourceWithHealth:
    """A desired or live object of an Application."""

    key: ResourceKey
    desired: Manifest | None
    live: Manifest | None
    assessment: Assessment | None = None  # of live


@dataclass(frozen=True, slots=True)
class FailedHealthRule:
    """A rule that failed, its first error, and all objects that it failed on."""

    rule: str
    error: str
    keys: tuple[ResourceKey, ...]


@dataclass(frozen=True, slots=True)
class ApplicationHealth:
    health: HealthStatus
    message: str = ""
    faults: tuple[FailedHealthRule, ...] = ()


def aggregate_health(app: ResourceKey, managed: Sequence[ResourceWithHealth], *, uid: str = "") -> ApplicationHealth:
    """Aggregate the health. `uid` is the Application's own: one with the same name in another cluster is not itself."""
    resources = [resource for resource in managed if not _is_excluded(resource)]
    worst = HealthStatus.HEALTHY
    causes: list[ResourceKey] = []
    for resource in resources:
        health = _counted_health(resource, app, uid)
        if health is None or worst.is_worse_than(health):
            continue
        if health.is_worse_than(worst):
            worst, causes = health, []
        if health is not HealthStatus.HEALTHY:
            causes.append(resource.key)
    if resources and all(resource.live is None for resource in resources) and HealthStatus.MISSING.is_worse_than(worst):
        worst, causes = HealthStatus.MISSING, []
    assessed = [resource for resource in resources if not _is_health_ignored(resource, app, uid)]
    return ApplicationHealth(worst, render_causes(causes), _collect_faults(assessed))


def find_resource_health(app: ResourceKey, managed: ResourceWithHealth, *, uid: str = "") -> Assessment | None:
    """Return the health of one resource; None for hooks, ignored resources and kinds without health."""
    if _is_excluded(managed) or _is_health_ignored(managed, app, uid):
        return None
    return Assessment(HealthStatus.MISSING) if managed.live is None else managed.assessment


def render_causes(keys: Sequence[ResourceKey]) -> str:
    """Render `Caused by apps/Deployment:default/web, PersistentVolume:pv-1 and 2 more`."""
    if not keys:
        return ""
    shown_keys = ", ".join(render_key(key) for key in keys[:MAX_NAMED_CAUSES])
    unnamed_count = len(keys) - MAX_NAMED_CAUSES
    return f"Caused by {shown_keys} and {unnamed_count} more" if unnamed_count > 0 else f"Caused by {shown_keys}"


def render_key(key: ResourceKey) -> str:
    kind = f"{key.group}/{key.kind}" if key.group else key.kind
    return f"{kind}:{key.namespace}/{key.name}" if key.namespace else f"{kind}:{key.name}"


def render_fault_conditions(faults: Sequence[FailedHealthRule]) -> list[str]:
    """Return one condition message per failed rule."""
    return [f"health check {fault.rule} failed on {_render_objects(fault.keys)}: {fault.error}" for fault in faults]


def _is_excluded(managed: ResourceWithHealth) -> bool:
    """True for hooks and skipped resources, which do not count as resources of the Application."""
    if managed.desired is not None and is_skipped(managed.desired):
        return True
    return managed.live is not None and is_hook(managed.live)


def _is_health_ignored(managed: ResourceWithHealth, app: ResourceKey, uid: str) -> bool:
    """True if the resource does not affect health: it has the ignore annotation, or it is the Application itself."""
    if managed.live is None:
        return False
    if get_annotation(managed.live, IGNORE_HEALTHCHECK) == "true":
        return True
    if managed.key != app or managed.key.group_kind != APPLICATION:
        return False
    metadata = managed.live.get("metadata")
    return not uid or (isinstance(metadata, dict) and metadata.get("uid") == uid)


def _counted_health(managed: ResourceWithHealth, app: ResourceKey, uid: str) -> HealthStatus | None:
    """Return the health that counts for the Application; None if the resource does not count."""
    # argo: a missing resource does not worsen the health, because the Application is OutOfSync anyway.
    if managed.live is None or managed.assessment is None or _is_health_ignored(managed, app, uid):
        return None
    health = managed.assessment.health
    if managed.key.group_kind == APPLICATION and health in (HealthStatus.MISSING, HealthStatus.UNKNOWN):
        return None  # argo: a child Application that was not reconciled yet does not count
    return health


def _collect_faults(resources: Sequence[ResourceWithHealth]) -> tuple[FailedHealthRule, ...]:
    """argo: there the first fault is a ComparisonError, which blocks every sync; here faults are only reported."""
    texts: dict[str, str] = {}
    keys: dict[str, list[ResourceKey]] = {}
    for resource in resources:
        if resource.live is not None and resource.assessment is not None and resource.assessment.fault:
            texts.setdefault(resource.assessment.rule, resource.assessment.fault)
            keys.setdefault(resource.assessment.rule, []).append(resource.key)
    return tuple(FailedHealthRule(rule, text, tuple(keys[rule])) for rule, text in texts.items())


def _render_objects(keys: Sequence[ResourceKey]) -> str:
    return render_key(keys[0]) if len(keys) == 1 else f"{len(keys)} objects"
