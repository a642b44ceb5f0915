"""The status of an Application.

In: a Report, with the Application as it was read. Out: the whole status, and the smallest patch that brings it about.
Never: a new time for what has not changed; a field that it does not own lost.
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
FRESH: Final = timedelta(minutes=1)  # so long a look that found nothing new is not written down
_UNKNOWN: Final = SyncStatus.UNKNOWN.value
IN_TREE: Final = "appTree"  # argo: health of resources is not in the status


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a look. None means: not looked at, so what was written stays."""

    app: Application
    now: str  # RFC 3339
    state: OperationState | None  # of the operation; None takes away what was written
    status: SyncStatus | None = None
    revisions: tuple[str, ...] = ()  # compared, in the order of the sources; none where they are not known
    sources: tuple[Source, ...] = ()  # compared
    tools: tuple[str, ...] = ()  # of the sources, by Argo CD's names
    resources: Sequence[Resource] | None = None
    is_lost: bool = False  # whether nobody knows how the resources compare
    is_compared: bool = True  # whether anything was compared, or tried to be
    shows_health: bool = False  # of each resource
    health: Assessment | None = None  # of all of them
    conditions: Sequence[Condition] = ()
    looked_for: frozenset[ConditionType] = frozenset()
    history: Sequence[Mapping[str, Any]] | None = None
    summary: Mapping[str, Any] | None = None
    controller_namespace: str = ""


def status(report: Report) -> dict[str, Any]:
    """Everything, also what stays as it was. Equal reports give equal statuses."""
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
    """The merge patch of the status; None where writing it would tell nothing new."""
    patch: dict[str, Any] = merge_patch.diff(dict(before), dict(after))
    if not patch or (patch.keys() == {RECONCILED} and is_fresh(before.get(RECONCILED), after.get(RECONCILED))):
        return None
    return patch


def unreadable(before: Mapping[str, Any], said: str, now: str) -> dict[str, Any] | None:
    """The merge patch of the status of an Application that cannot be read; None where it says so already."""
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
    """What a comparison is about. Where it differs from what is written, the application must be compared anew."""
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
    """Whether the Application asks for something else than what was compared last."""
    compared = mapping(app.status.get("sync")).get("comparedTo")
    return compared != compared_to(app, app.sources)


def _compared(report: Report) -> dict[str, Any]:
    if report.status is None:
        return {}
    before = mapping(report.app.status.get("sync"))
    if not report.is_compared and before:
        return {"sync": {**before, "status": report.status.value}}  # argo: what was compared last stays
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
        # argo: any failure to load makes all of them Unknown; hooks have no status, neither then nor before
        found["resources"] = [{**each, "status": _UNKNOWN} if each.get("status") else dict(each) for each in known]
    if report.health is not None and report.health.health is not None:
        found["health"] = _health(report.app.status.get("health"), report.health, report.now)
    return found


def _health(before: Any, found: Assessment, now: str) -> dict[str, str]:
    """argo: its time is that of the last change, not of the last look."""
    written = mapping(before)
    word = str(found.health)
    since = written.get("lastTransitionTime") if written.get("status") == word else None
    return {"status": word, **given(message=found.message), "lastTransitionTime": str(since or now)}


def _operation(report: Report) -> dict[str, Any]:
    """What was read and is not changed keeps its words."""
    if report.state is None:
        return {}
    if report.state == report.app.state:
        return {"operationState": report.app.status.get("operationState")}
    return {"operationState": _cleaned(state_wire(report.state))}


def _cleaned(wire: Any) -> Any:
    """k8s: nulls that users wrote, such as in valuesObject, would be lost in the patch; so they are not told at all."""
    return merge_patch.without_nulls(wire)


def is_fresh(before: Any, now: Any) -> bool:
    try:
        age = datetime.fromisoformat(now) - datetime.fromisoformat(before)
    except (TypeError, ValueError):
        return False
    return timedelta(0) <= age < FRESH
