"""Aggregates the health of an Application from its resources.

In: managed resources with their assessments. Out: the worst health, the resources that caused it, the rules that
failed. Never: lets a failed rule affect more than its own object, which is Unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.annotations import IGNORE_HEALTHCHECK
from argosy.gitops.application.hooks import annotation_text, is_hook, is_skipped
from argosy.gitops.application.step_results import Assessment, Health
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

APPLICATION: Final = GroupKind("argoproj.io", "Application")
MOST_CAUSES: Final = 3  # argo: this many are named, the rest is counted


@dataclass(frozen=True, slots=True)
class Managed:
    """A desired or live object of an Application."""

    key: ResourceKey
    desired: Manifest | None
    live: Manifest | None
    assessment: Assessment | None = None  # of live


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that failed, its first error, and all objects that it failed on."""

    rule: str
    text: str
    keys: tuple[ResourceKey, ...]


@dataclass(frozen=True, slots=True)
class ApplicationHealth:
    health: Health
    message: str = ""
    faults: tuple[Fault, ...] = ()


def aggregate(app: ResourceKey, managed: Sequence[Managed], *, uid: str = "") -> ApplicationHealth:
    """Aggregate the health. `uid` is the Application's own: one with the same name in another cluster is not itself."""
    counted = [each for each in managed if not _is_left_out(each)]
    worst = Health.HEALTHY
    causes: list[ResourceKey] = []
    for each in counted:
        health = _weight(each, app, uid)
        if health is None or worst.is_worse_than(health):
            continue
        if health.is_worse_than(worst):
            worst, causes = health, []
        if health is not Health.HEALTHY:
            causes.append(each.key)
    if counted and all(each.live is None for each in counted) and Health.MISSING.is_worse_than(worst):
        worst, causes = Health.MISSING, []
    judged = [each for each in counted if not _is_disregarded(each, app, uid)]
    return ApplicationHealth(worst, caused_by(causes), _faults(judged))


def own_assessment(app: ResourceKey, managed: Managed, *, uid: str = "") -> Assessment | None:
    """Return the health of one resource; None for hooks, ignored resources and kinds without health."""
    if _is_left_out(managed) or _is_disregarded(managed, app, uid):
        return None
    return Assessment(Health.MISSING) if managed.live is None else managed.assessment


def caused_by(keys: Sequence[ResourceKey]) -> str:
    """Render `Caused by apps/Deployment:default/web, PersistentVolume:pv-1 and 2 more`."""
    if not keys:
        return ""
    named = ", ".join(shown(key) for key in keys[:MOST_CAUSES])
    more = len(keys) - MOST_CAUSES
    return f"Caused by {named} and {more} more" if more > 0 else f"Caused by {named}"


def shown(key: ResourceKey) -> str:
    kind = f"{key.group}/{key.kind}" if key.group else key.kind
    return f"{kind}:{key.namespace}/{key.name}" if key.namespace else f"{kind}:{key.name}"


def conditions(faults: Sequence[Fault]) -> list[str]:
    """Return one condition message per failed rule."""
    return [f"health check {fault.rule} failed on {_counted(fault.keys)}: {fault.text}" for fault in faults]


def _is_left_out(managed: Managed) -> bool:
    """True for hooks and skipped resources, which do not count as resources of the Application."""
    if managed.desired is not None and is_skipped(managed.desired):
        return True
    return managed.live is not None and is_hook(managed.live)


def _is_disregarded(managed: Managed, app: ResourceKey, uid: str) -> bool:
    """True if the resource does not affect health: it has the ignore annotation, or it is the Application itself."""
    if managed.live is None:
        return False
    if annotation_text(managed.live, IGNORE_HEALTHCHECK) == "true":
        return True
    if managed.key != app or managed.key.group_kind != APPLICATION:
        return False
    metadata = managed.live.get("metadata")
    return not uid or (isinstance(metadata, dict) and metadata.get("uid") == uid)


def _weight(managed: Managed, app: ResourceKey, uid: str) -> Health | None:
    """Return the health that counts for the Application; None if the resource does not count."""
    # argo: a missing resource does not worsen the health, because the Application is OutOfSync anyway.
    if managed.live is None or managed.assessment is None or _is_disregarded(managed, app, uid):
        return None
    health = managed.assessment.health
    if managed.key.group_kind == APPLICATION and health in (Health.MISSING, Health.UNKNOWN):
        return None  # argo: a child Application that was not reconciled yet does not count
    return health


def _faults(judged: Sequence[Managed]) -> tuple[Fault, ...]:
    """argo: there the first fault is a ComparisonError, which blocks every sync; here faults are only reported."""
    texts: dict[str, str] = {}
    keys: dict[str, list[ResourceKey]] = {}
    for each in judged:
        if each.live is not None and each.assessment is not None and each.assessment.fault:
            texts.setdefault(each.assessment.rule, each.assessment.fault)
            keys.setdefault(each.assessment.rule, []).append(each.key)
    return tuple(Fault(rule, text, tuple(keys[rule])) for rule, text in texts.items())


def _counted(keys: Sequence[ResourceKey]) -> str:
    return shown(keys[0]) if len(keys) == 1 else f"{len(keys)} objects"
