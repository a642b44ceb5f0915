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

from argosy.gitops.application.step_results import Assessment, Health
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest

# k8s: the groups of built-in kinds and aggregated APIs. Other groups below k8s.io, such as
# gateway.networking.k8s.io, are custom resources.
_KUBERNETES: Final = """
    admission admissionregistration apiextensions apiregistration authentication authorization certificates
    coordination custom.metrics discovery events external.metrics flowcontrol.apiserver imagepolicy
    internal.apiserver metrics networking node rbac.authorization resource scheduling storage storagemigration
"""
KUBERNETES_GROUPS: Final = frozenset(f"{group}.k8s.io" for group in _KUBERNETES.split())
_LOUD: Final = {
    "Stalled": Health.DEGRADED,
    "Reconciling": Health.PROGRESSING,
    "Failed": Health.DEGRADED,
    "Suspended": Health.SUSPENDED,
}
_FINISHED: Final = ("Succeeded", "Complete", "Completed")
_DECIDING: Final = ("Ready", "Available", *_FINISHED)
_FAILURE: Final = re.compile(
    r"^err|fail|error|invalid|time[d_-]?out|deadline|back[_-]?off|crash|denied|forbidden|unauthorized|rejected|abort",
    re.IGNORECASE,
)
_VOCABULARY: Final = {
    Health.HEALTHY: """
        ready running active available bound succeeded success successful complete completed done finished healthy
        deployed established installed online synced ok
    """,
    Health.DEGRADED: """
        failed failure error errored degraded unhealthy invalid lost crashed crashloopbackoff aborted rejected
        timedout timeout broken
    """,
    Health.PROGRESSING: """
        pending creating provisioning initializing initialising init starting started deploying installing updating
        upgrading scaling progressing inprogress reconciling processing queued waiting restarting resuming new
        preparing building binding deleting terminating stopping unknown
    """,
    Health.SUSPENDED: "suspended paused stopped hibernated",
}
_WORDS: Final = {word: health for health, words in _VOCABULARY.items() for word in words.split()}


def is_custom(group: str) -> bool:
    """k8s: the group of a custom resource must contain a dot, so `apps` and the core group are built in."""
    return "." in group and group not in KUBERNETES_GROUPS


def judge(manifest: Manifest) -> Assessment | None:
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    # argo: an Application has no health unless its check is enabled.
    if not is_custom(group) or (group, manifest.get("kind")) == ("argoproj.io", "Application"):
        return None
    health, message = _verdict(manifest)
    return Assessment(health, f"fallback: {message}", f"fallback {group}/{manifest.get('kind')}")


def _verdict(manifest: Manifest) -> tuple[Health, str]:
    status = _mapping(manifest.get("status"))
    if not status:
        return Health.HEALTHY, "no status"
    generation = _number(_mapping(manifest.get("metadata")).get("generation"))
    if _is_behind(status, generation):
        return Health.PROGRESSING, f"waiting for the controller to observe generation {generation}"
    return (
        _by_conditions(status, generation)
        or _by_phase(status)
        or (Health.HEALTHY, "no known field in the status")
    )


def _by_conditions(status: Mapping[str, Any], generation: int) -> tuple[Health, str] | None:
    found = _conditions(status)
    for kind, health in _LOUD.items():
        if _is(found.get(kind), "True"):
            return health, _told(found[kind])
    for kind in _FINISHED:
        if _is(found.get(kind), "True") and not _is_behind(found[kind], generation):
            return Health.HEALTHY, _told(found[kind])
    deciding = next((found[kind] for kind in _DECIDING if kind in found), None)
    return None if deciding is None else _by_condition(deciding, status, generation)


def _by_condition(condition: Mapping[str, Any], status: Mapping[str, Any], generation: int) -> tuple[Health, str]:
    told = _told(condition)
    if _is_behind(condition, generation):
        return Health.PROGRESSING, f"waiting for generation {generation}; before that, {told}"
    if _is(condition, "True"):
        return Health.HEALTHY, told
    phase = _by_phase(status)
    if phase and phase[0] in (Health.DEGRADED, Health.SUSPENDED):
        return phase
    failed = _is(condition, "False") and _FAILURE.search(_text(condition.get("reason")))
    return (Health.DEGRADED if failed else Health.PROGRESSING), told


def _by_phase(status: Mapping[str, Any]) -> tuple[Health, str] | None:
    for field in ("phase", "state"):
        if word := _text(status.get(field)):
            health = _WORDS.get(re.sub(r"[\s_-]", "", word).lower())
            if health is None:
                return Health.HEALTHY, f"{field} is {word}, which is not a known phase"
            detail = _text(status.get("message"))
            return health, f"{field} is {word}: {detail}" if detail else f"{field} is {word}"
    return None


def _conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the conditions by type; the first of each type counts."""
    listed = status.get("conditions")
    found: dict[str, Mapping[str, Any]] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and (kind := _text(each.get("type"))):
            found.setdefault(kind, each)
    return found


def _told(condition: Mapping[str, Any]) -> str:
    """Render `Ready=False (Pending): waiting for a volume`, without missing parts."""
    status, reason, message = (_text(condition.get(name)) for name in ("status", "reason", "message"))
    told = f"{_text(condition.get('type'))}={status or 'Unknown'}"
    if reason:
        told += f" ({reason})"
    return f"{told}: {message}" if message else told


def _is(condition: Mapping[str, Any] | None, status: str) -> bool:
    return condition is not None and condition.get("status") == status


def _is_behind(holder: Mapping[str, Any], generation: int) -> bool:
    seen = holder.get("observedGeneration")
    return isinstance(seen, int | float) and not isinstance(seen, bool) and seen < generation


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
