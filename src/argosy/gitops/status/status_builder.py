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
from argosy.gitops.application.sources import remove_empty_options
from argosy.gitops.application.step_results import Assessment, HealthStatus, SyncStatus
from argosy.gitops.status.conditions import AppCondition, ConditionType, conditions_to_wire
from argosy.gitops.status.operation_state_json_writer import state_to_wire
from argosy.gitops.status.resources import ResourceStatus, resources_to_wire
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings, omit_empty, sources_to_wire
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.patch import merge_patch

RECONCILED_AT: Final = "reconciledAt"
MIN_REWRITE_INTERVAL: Final = timedelta(minutes=1)  # a pass that changed nothing is not written within this time
_UNKNOWN_STATUS: Final = SyncStatus.UNKNOWN.value
HEALTH_SOURCE_APP_TREE: Final = "appTree"  # argo: health of resources is not in the status but in the tree


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """The result of a pass. None: not evaluated, so the written value stays."""

    app: Application
    now: str  # RFC 3339
    state: OperationState | None  # of the operation; None removes it
    status: SyncStatus | None = None
    revisions: tuple[str, ...] = ()  # in the order of the sources; empty if unknown
    sources: tuple[Source, ...] = ()  # compared
    tools: tuple[str, ...] = ()  # of the sources, with Argo CD's names
    resources: Sequence[ResourceStatus] | None = None
    is_desired_known: bool = True
    is_comparison_failed: bool = False  # True if the resources could not be compared
    is_compared: bool = True  # True if a comparison was made or tried
    persists_resource_health: bool = False  # include health of each resource
    health: Assessment | None = None  # of the Application
    conditions: Sequence[AppCondition] = ()
    evaluated_types: frozenset[ConditionType] = frozenset()
    history: Sequence[Mapping[str, Any]] | None = None
    summary: Mapping[str, Any] | None = None
    controller_namespace: str = ""


def build_status(report: StatusReport) -> dict[str, Any]:
    """Return the complete status, including unchanged parts. Equal reports give equal statuses."""
    before = report.app.status
    after = {
        **{name: value for name, value in before.items() if name not in _OPTIONAL_FIELDS},
        **_build_sync(report),
        **_build_resources_and_health(report),
        **_build_operation_state(report),
        **omit_empty(controllerNamespace=report.controller_namespace or before.get("controllerNamespace")),
        **omit_empty(
            conditions=conditions_to_wire(
                before.get("conditions"), report.conditions, report.evaluated_types, report.now
            )
        ),
        **omit_empty(history=before.get("history") if report.history is None else _remove_nulls(list(report.history))),
        **({} if report.summary is None else {"summary": dict(report.summary)}),
        RECONCILED_AT: _compute_comparison_time(report),
    }
    return {name: value for name, value in after.items() if value is not None}


_OPTIONAL_FIELDS: Final = frozenset({"operationState", "conditions", "history", "controllerNamespace"})


def build_status_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the merge patch of the status; None if there is nothing new to write."""
    patch: dict[str, Any] = merge_patch.diff(dict(before), dict(after))
    if not patch or (
        patch.keys() == {RECONCILED_AT}
        and is_recent(before.get(RECONCILED_AT), after.get(RECONCILED_AT))
        and not _is_older_than_operation(before)
    ):
        return None
    return patch


def _compute_comparison_time(report: StatusReport) -> str:
    """Return a time before the end of an operation that ended in this pass: it changed objects that were compared.

    argo: `argocd app sync` waits for a comparison that is not older than the operation.
    """
    state = report.state
    if state is None or state == report.app.state or not state.phase.is_over:
        return report.now
    return format_timestamp(datetime.fromisoformat(report.now) - timedelta(seconds=1))


def _is_older_than_operation(status: Mapping[str, Any]) -> bool:
    """True if no comparison was reported since the operation ended."""
    try:
        finished = datetime.fromisoformat(as_mapping(status.get("operationState"))["finishedAt"])
        return datetime.fromisoformat(status[RECONCILED_AT]) < finished
    except (KeyError, TypeError, ValueError):
        return False


def build_unreadable_patch(before: Mapping[str, Any], message: str, now: str) -> dict[str, Any] | None:
    """Return the status patch of an Application that cannot be parsed; None if it is already written."""
    conditions = conditions_to_wire(
        before.get("conditions"),
        [AppCondition(ConditionType.INVALID_SPEC_ERROR, message)],
        {ConditionType.INVALID_SPEC_ERROR},
        now,
    )
    if conditions == before.get("conditions"):
        return None
    health = _build_health(before.get("health"), Assessment(HealthStatus.UNKNOWN), now)
    return {"conditions": conditions, "sync": {"status": _UNKNOWN_STATUS}, "health": {"message": None, **health}}


def build_compared_to(app: Application, sources: Sequence[Source]) -> dict[str, Any]:
    """Return the inputs of a comparison. If they differ from the written ones, a new comparison is needed."""
    spec = as_mapping(app.wire.get("spec"))
    wire: dict[str, Any] = _remove_nulls(
        {
            "destination": omit_empty(**as_mapping(spec.get("destination"))),
            **omit_empty(ignoreDifferences=spec.get("ignoreDifferences")),
            **sources_to_wire([remove_empty_options(source.wire) for source in sources], are_many=app.has_many_sources),
        }
    )
    return wire


def is_comparison_outdated(app: Application) -> bool:
    """True if the Application changed since the last comparison."""
    compared = as_mapping(app.status.get("sync")).get("comparedTo")
    return compared != build_compared_to(app, app.sources)


def _build_sync(report: StatusReport) -> dict[str, Any]:
    if report.status is None:
        return {}
    before = as_mapping(report.app.status.get("sync"))
    if not report.is_compared:  # argo: the last comparison stays
        return {"sync": {**before, "status": report.status.value}}
    has_many = report.app.has_many_sources
    revision = report.revisions[0] if report.revisions and not has_many else ""
    return {
        "sync": {
            "status": report.status.value,
            "comparedTo": build_compared_to(report.app, report.sources or report.app.sources),
            **omit_empty(revision=revision, revisions=list(report.revisions) if has_many else None),
        },
        **_build_source_types(report),
    }


def _build_source_types(report: StatusReport) -> dict[str, Any]:
    if not any(report.tools):
        return {} if report.is_desired_known else {"sourceType": None, "sourceTypes": None}
    if report.app.has_many_sources:
        return {"sourceTypes": list(report.tools), "sourceType": None}  # argo: "" for a source with value files only
    return {"sourceType": report.tools[0], "sourceTypes": None}


def _build_resources_and_health(report: StatusReport) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if report.resources is not None:
        lines = resources_to_wire(report.resources, with_health=report.persists_resource_health)
        fields["resources"] = lines or None
        fields["resourceHealthSource"] = None if report.persists_resource_health else HEALTH_SOURCE_APP_TREE
    elif report.is_comparison_failed and (old_entries := as_mappings(report.app.status.get("resources"))):
        # argo: any load failure makes all of them Unknown; hooks never have a status
        fields["resources"] = [
            {**entry, "status": _UNKNOWN_STATUS} if entry.get("status") else dict(entry) for entry in old_entries
        ]
    if report.health is not None and report.health.health is not None:
        fields["health"] = _build_health(report.app.status.get("health"), report.health, report.now)
    return fields


def _build_health(before: Any, assessment: Assessment, now: str) -> dict[str, str]:
    """argo: lastTransitionTime is the time of the last change, not of the last check."""
    old_health = as_mapping(before)
    health_text = str(assessment.health)
    since = old_health.get("lastTransitionTime") if old_health.get("status") == health_text else None
    return {"status": health_text, **omit_empty(message=assessment.message), "lastTransitionTime": str(since or now)}


def _build_operation_state(report: StatusReport) -> dict[str, Any]:
    """Keep an unchanged operation state as it is written."""
    if report.state is None:
        return {}
    if report.state == report.app.state:
        return {"operationState": report.app.status.get("operationState")}
    return {"operationState": _remove_nulls(state_to_wire(report.state))}


def _remove_nulls(wire: Any) -> Any:
    """k8s: a merge patch would drop nulls of users, such as in valuesObject, so they are not written."""
    return merge_patch.remove_nulls(wire)


def is_recent(before: Any, now: Any) -> bool:
    try:
        age = datetime.fromisoformat(now) - datetime.fromisoformat(before)
    except (TypeError, ValueError):
        return False
    return timedelta(0) <= age < MIN_REWRITE_INTERVAL
