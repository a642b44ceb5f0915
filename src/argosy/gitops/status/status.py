"""Builds the status of an Application.

In: a Report, with the Application as it was read. Out: the complete status, and the smallest patch for it. Never: a new
timestamp for an unchanged value; drops a field that it does not own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from argosy.gitops.application import Application, OperationState, Source
from argosy.gitops.application.step_results import Assessment, Health, SyncStatus
from argosy.gitops.status.conditions import Condition, ConditionType, conditions_wire
from argosy.gitops.status.operations import state_wire
from argosy.gitops.status.resources import Resource, resources_wire
from argosy.gitops.status.wire_format import given, mapping, mappings, synced_wire
from argosy.kube.patch import merge_patch

RECONCILED: Final = "reconciledAt"
FRESH: Final = timedelta(minutes=1)  # a pass that changed nothing is not written within this time
_UNKNOWN: Final = SyncStatus.UNKNOWN.value
IN_TREE: Final = "appTree"  # argo: health of resources is not in the status but in the tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a pass. None: not evaluated, so the written value stays."""

    app: Application
    now: str  # RFC 3339
    state: OperationState | None  # of the operation; None removes it
    status: SyncStatus | None = None
    revisions: tuple[str, ...] = ()  # in the order of the sources; empty if unknown
    sources: tuple[Source, ...] = ()  # compared
    tools: tuple[str, ...] = ()  # of the sources, with Argo CD's names
    resources: Sequence[Resource] | None = None
    is_lost: bool = False  # True if the resources could not be compared
    is_compared: bool = True  # True if a comparison was made or tried
    shows_health: bool = False  # include health of each resource
    health: Assessment | None = None  # of the Application
    conditions: Sequence[Condition] = ()
    looked_for: frozenset[ConditionType] = frozenset()
    history: Sequence[Mapping[str, Any]] | None = None
    summary: Mapping[str, Any] | None = None
    controller_namespace: str = ""


def status(report: Report) -> dict[str, Any]:
    """Return the complete status, including unchanged parts. Equal reports give equal statuses."""
    before = report.app.status
    after = {
        **{name: value for name, value in before.items() if name not in _OPTIONAL},
        **_compared(report),
        **_judged(report),
        **_operation(report),
        **given(controllerNamespace=report.controller_namespace or before.get("controllerNamespace")),
        **given(conditions=conditions_wire(before.get("conditions"), report.conditions, report.looked_for, report.now)),
        **given(history=before.get("history") if report.history is None else _cleaned(list(report.history))),
        **({} if report.summary is None else {"summary": dict(report.summary)}),
        RECONCILED: report.now,
    }
    return {name: value for name, value in after.items() if value is not None}


_OPTIONAL: Final = frozenset({"operationState", "conditions", "history", "controllerNamespace"})


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the merge patch of the status; None if there is nothing new to write."""
    patch: dict[str, Any] = merge_patch.diff(dict(before), dict(after))
    if not patch or (patch.keys() == {RECONCILED} and is_fresh(before.get(RECONCILED), after.get(RECONCILED))):
        return None
    return patch


def unreadable(before: Mapping[str, Any], said: str, now: str) -> dict[str, Any] | None:
    """Return the status patch of an Application that cannot be parsed; None if it is already written."""
    told = conditions_wire(
        before.get("conditions"),
        [Condition(ConditionType.INVALID_SPEC_ERROR, said)],
        {ConditionType.INVALID_SPEC_ERROR},
        now,
    )
    if told == before.get("conditions"):
        return None
    health = _health(before.get("health"), Assessment(Health.UNKNOWN), now)
    return {"conditions": told, "sync": {"status": _UNKNOWN}, "health": {"message": None, **health}}


def compared_to(app: Application, sources: Sequence[Source]) -> dict[str, Any]:
    """Return the inputs of a comparison. If they differ from the written ones, a new comparison is needed."""
    spec = mapping(app.wire.get("spec"))
    written: dict[str, Any] = _cleaned(
        {
            "destination": given(**mapping(spec.get("destination"))),
            **given(ignoreDifferences=spec.get("ignoreDifferences")),
            **synced_wire([each.wire for each in sources], are_many=app.has_many_sources),
        }
    )
    return written


def is_outdated(app: Application) -> bool:
    """True if the Application changed since the last comparison."""
    compared = mapping(app.status.get("sync")).get("comparedTo")
    return compared != compared_to(app, app.sources)


def _compared(report: Report) -> dict[str, Any]:
    if report.status is None:
        return {}
    before = mapping(report.app.status.get("sync"))
    if not report.is_compared and before:
        return {"sync": {**before, "status": report.status.value}}  # argo: the last comparison stays
    many = report.app.has_many_sources
    revision = report.revisions[0] if report.revisions and not many else ""
    tools = [tool for tool in report.tools if tool]
    return {
        "sync": {
            "status": report.status.value,
            "comparedTo": compared_to(report.app, report.sources or report.app.sources),
            **given(revision=revision, revisions=list(report.revisions) if many else None),
        },
        **({} if not tools else {"sourceTypes": tools} if many else {"sourceType": tools[0]}),
        **({} if not tools else {"sourceType": None} if many else {"sourceTypes": None}),
    }


def _judged(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if report.resources is not None:
        lines = resources_wire(report.resources, shows_health=report.shows_health)
        found["resources"] = lines or None
        found["resourceHealthSource"] = None if report.shows_health else IN_TREE
    elif report.is_lost and (known := mappings(report.app.status.get("resources"))):
        # argo: any load failure makes all of them Unknown; hooks never have a status
        found["resources"] = [{**each, "status": _UNKNOWN} if each.get("status") else dict(each) for each in known]
    if report.health is not None and report.health.health is not None:
        found["health"] = _health(report.app.status.get("health"), report.health, report.now)
    return found


def _health(before: Any, found: Assessment, now: str) -> dict[str, str]:
    """argo: lastTransitionTime is the time of the last change, not of the last check."""
    written = mapping(before)
    word = str(found.health)
    since = written.get("lastTransitionTime") if written.get("status") == word else None
    return {"status": word, **given(message=found.message), "lastTransitionTime": str(since or now)}


def _operation(report: Report) -> dict[str, Any]:
    """Keep an unchanged operation state as it is written."""
    if report.state is None:
        return {}
    if report.state == report.app.state:
        return {"operationState": report.app.status.get("operationState")}
    return {"operationState": _cleaned(state_wire(report.state))}


def _cleaned(wire: Any) -> Any:
    """k8s: a merge patch would drop nulls of users, such as in valuesObject, so they are not written."""
    return merge_patch.without_nulls(wire)


def is_fresh(before: Any, now: Any) -> bool:
    try:
        age = datetime.fromisoformat(now) - datetime.fromisoformat(before)
    except (TypeError, ValueError):
        return False
    return timedelta(0) <= age < FRESH
