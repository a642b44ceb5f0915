"""Text and JSON output of setup plans. In: a plan or status. Out: lines, and data for scripts. Never: prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.tables import plain, table

if TYPE_CHECKING:
    from argosy.features.setup.delivery_service import Change, Planned, SetupStatus

SIGNS: Final = {"create": "+", "update": "~", "unchanged": "=", "delete": "-"}
PAST: Final = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}
API: Final = "cli.argosy.dev/v1"


def head(planned: Planned) -> Iterator[str]:
    place = planned.plan.installation
    user = f"  user {planned.user}" if planned.user else ""
    yield f"Cluster   {planned.where}{user}"
    if place.is_operated:
        how = "managed by an operator: settings go into the resource, not into argocd-cm"
        yield f"Argo CD   ArgoCD/{place.name} in {place.namespace} ({how})"
    else:
        yield f"Argo CD   {place.namespace} (no operator: settings go directly into argocd-cm)"


def plan_lines(planned: Planned) -> Iterator[str]:
    yield from head(planned)
    yield ""
    rows = [
        [each.name, each.namespace, each.sync, _cell(planned, each.name)]
        for each in planned.request.delivery.environments
    ]
    if _of(planned, ""):
        rows.append(["(cluster)", "", "", _cell(planned, "")])
    yield from (f"  {line}" for line in table(("ENVIRONMENT", "NAMESPACE", "SYNC", "CHANGE"), rows))
    for change in planned.plan.to_write:
        if change.differences:
            yield f"\n  {SIGNS[change.verb]} {_name(change)}"
            yield from (f"      {plain(difference)}" for difference in change.differences)


def closing_lines(planned: Planned, command: str = "") -> Iterator[str]:
    """Render the summary, notes and problems; `command` applies the plan."""
    plan = planned.plan
    counts = _counts(planned)
    if plan.to_write:
        apply = f"   Apply with: {command}" if command and not plan.problems else ""
        added, changed, removed = counts["create"], counts["update"], counts["delete"]
        yield f"\nPlan: {added} to add, {changed} to change, {removed} to remove.{apply}"
    else:
        yield "\nPlan: nothing to do."
    yield from (f"! {note}" for note in plan.notes)
    yield from (f"✗ {problem}" for problem in plan.problems)


def done_line(change: Change, verb: str) -> str:
    where = f" in {change.key.namespace}" if change.key.namespace else ""
    return f"{PAST[verb]:<9} {_name(change)}{where}"


def _cell(planned: Planned, environment: str) -> str:
    found = _of(planned, environment)
    return "  ".join(f"{SIGNS[change.verb]} {_name(change)}" for change in found) or "nothing"


def _of(planned: Planned, environment: str) -> list[Change]:
    return [change for change in planned.plan.changes if change.environment == environment]


def _name(change: Change) -> str:
    which = change.key.name if change.environment else f"({change.key.kind} {change.key.name})"
    return f"{change.part} {which}"


def _counts(planned: Planned) -> dict[str, int]:
    return {verb: sum(change.verb == verb for change in planned.plan.changes) for verb in SIGNS}


def plan_data(planned: Planned, kind: str = "SetupPlan") -> dict[str, Any]:
    plan = planned.plan
    return {
        "apiVersion": API,
        "kind": kind,
        "target": planned.where,
        "user": planned.user,
        "argocd": _argocd(planned),
        **_counts(planned),
        "changes": [_change_data(change) for change in plan.changes],
        "notes": list(plan.notes),
        "problems": list(plan.problems),
    }


def _change_data(change: Change) -> dict[str, Any]:
    return {
        "environment": change.environment,
        "part": str(change.part),
        "verb": str(change.verb),
        "key": {"group": change.key.group, "kind": change.key.kind, "namespace": change.key.namespace,
                "name": change.key.name},
        "differences": list(change.differences),
        "manifest": change.shown,
    }  # fmt: skip


def _argocd(planned: Planned) -> dict[str, Any]:
    place = planned.plan.installation
    return {"namespace": place.namespace, "name": place.name, "operated": place.is_operated}


def status_lines(status: SetupStatus) -> Iterator[str]:
    yield from head(status.planned)
    yield ""
    rows = [
        [each.name, each.namespace, each.application, each.sync, each.health, ", ".join(each.missing) or "complete"]
        for each in status.environments
    ]
    headings = ("ENVIRONMENT", "NAMESPACE", "APPLICATION", "SYNC STATUS", "HEALTH STATUS", "SETUP")
    yield from table(headings, rows)
    yield from (f"✗ {sentence}" for sentence in status.missing)


def status_data(status: SetupStatus) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "SetupStatus",
        "complete": status.is_complete,
        "target": status.planned.where,
        "argocd": _argocd(status.planned),
        "environments": [
            {"name": each.name, "namespace": each.namespace, "application": each.application,
             "sync": each.sync, "health": each.health, "missing": list(each.missing)}
            for each in status.environments
        ],
        "missing": list(status.missing),
    }  # fmt: skip
