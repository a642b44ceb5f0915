"""Text and JSON output of setup plans. In: a plan or status. Out: lines, and data for scripts. Never: prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from argosy.cli.tables import drop_control_characters, format_table
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.setup.delivery_service import PlannedSetup, SetupChange, SetupStatus

VERB_SIGNS: Final = {"create": "+", "update": "~", "unchanged": "=", "delete": "-"}
VERB_PAST_TENSES: Final = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}


def render_header(planned: PlannedSetup) -> Iterator[str]:
    installation = planned.plan.installation
    user = f"  user {planned.user}" if planned.user else ""
    yield f"Cluster   {planned.where}{user}"
    if installation.has_operator:
        explanation = "managed by an operator: settings go into the resource, not into argocd-cm"
        yield f"Argo CD   ArgoCD/{installation.name} in {installation.namespace} ({explanation})"
    else:
        yield f"Argo CD   {installation.namespace} (no operator: settings go directly into argocd-cm)"


def render_plan(planned: PlannedSetup) -> Iterator[str]:
    yield from render_header(planned)
    yield ""
    rows = [
        [environment.name, environment.namespace, environment.sync, _render_changes_cell(planned, environment.name)]
        for environment in planned.request.delivery.environments
    ]
    if _list_changes(planned, ""):
        rows.append(["(cluster)", "", "", _render_changes_cell(planned, "")])
    yield from (f"  {line}" for line in format_table(("ENVIRONMENT", "NAMESPACE", "SYNC", "CHANGE"), rows))
    for change in planned.plan.to_write:
        if change.differences:
            yield f"\n  {VERB_SIGNS[change.verb]} {_render_change_name(change)}"
            yield from (f"      {drop_control_characters(difference)}" for difference in change.differences)


def render_summary(planned: PlannedSetup, command: str = "") -> Iterator[str]:
    """Render the summary, notes and problems; `command` applies the plan."""
    plan = planned.plan
    counts = _count_verbs(planned)
    if plan.to_write:
        apply_hint = f"   Apply with: {command}" if command and not plan.problems else ""
        added, changed, removed = counts["create"], counts["update"], counts["delete"]
        yield f"\nPlan: {added} to add, {changed} to change, {removed} to remove.{apply_hint}"
    else:
        yield "\nPlan: nothing to do."
    yield from (f"! {note}" for note in plan.notes)
    yield from (f"✗ {problem}" for problem in plan.problems)


def render_executed_change(change: SetupChange, verb: str) -> str:
    where = f" in {change.key.namespace}" if change.key.namespace else ""
    return f"{VERB_PAST_TENSES[verb]:<9} {_render_change_name(change)}{where}"


def _render_changes_cell(planned: PlannedSetup, environment: str) -> str:
    environment_changes = _list_changes(planned, environment)
    return (
        "  ".join(f"{VERB_SIGNS[change.verb]} {_render_change_name(change)}" for change in environment_changes)
        or "nothing"
    )


def _list_changes(planned: PlannedSetup, environment: str) -> list[SetupChange]:
    return [change for change in planned.plan.changes if change.environment == environment]


def _render_change_name(change: SetupChange) -> str:
    object_name = change.key.name if change.environment else f"({change.key.kind} {change.key.name})"
    return f"{change.part} {object_name}"


def _count_verbs(planned: PlannedSetup) -> dict[str, int]:
    return {verb: sum(change.verb == verb for change in planned.plan.changes) for verb in VERB_SIGNS}


def plan_to_wire(planned: PlannedSetup, kind: str = "SetupPlan") -> dict[str, Any]:
    plan = planned.plan
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": kind,
        "target": planned.where,
        "user": planned.user,
        "argocd": _installation_to_wire(planned),
        **_count_verbs(planned),
        "changes": [_change_to_wire(change) for change in plan.changes],
        "notes": list(plan.notes),
        "problems": list(plan.problems),
    }


def _change_to_wire(change: SetupChange) -> dict[str, Any]:
    return {
        "environment": change.environment,
        "part": str(change.part),
        "verb": str(change.verb),
        "key": {"group": change.key.group, "kind": change.key.kind, "namespace": change.key.namespace,
                "name": change.key.name},
        "differences": list(change.differences),
        "manifest": change.redacted_manifest,
    }  # fmt: skip


def _installation_to_wire(planned: PlannedSetup) -> dict[str, Any]:
    installation = planned.plan.installation
    return {"namespace": installation.namespace, "name": installation.name, "operated": installation.has_operator}


def render_status(status: SetupStatus) -> Iterator[str]:
    yield from render_header(status.planned)
    yield ""
    rows = [
        [
            environment.name,
            environment.namespace,
            environment.application,
            environment.sync,
            environment.health,
            ", ".join(environment.missing) or "complete",
        ]
        for environment in status.environments
    ]
    headings = ("ENVIRONMENT", "NAMESPACE", "APPLICATION", "SYNC STATUS", "HEALTH STATUS", "SETUP")
    yield from format_table(headings, rows)
    yield from (f"✗ {sentence}" for sentence in status.missing)


def status_to_wire(status: SetupStatus) -> dict[str, Any]:
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": "SetupStatus",
        "complete": status.is_complete,
        "target": status.planned.where,
        "argocd": _installation_to_wire(status.planned),
        "environments": [
            {"name": environment.name, "namespace": environment.namespace, "application": environment.application,
             "sync": environment.sync, "health": environment.health, "missing": list(environment.missing)}
            for environment in status.environments
        ],
        "missing": list(status.missing),
    }  # fmt: skip
