"""Evaluation of trigger conditions and rendering of messages for a destination.

In: a manifest, settings, a pool of confined workers. Out: condition results, rendered notifications. Never: evaluates a
user's text in this process; passes secrets to a template that does not use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from argosy.errors import UserError
from argosy.features.notifications import constants
from argosy.features.notifications.condition_and_template_worker import EVALUATE_FUNCTION, RENDER_FUNCTION
from argosy.features.notifications.settings import NotificationSettings, TriggerCondition
from argosy.features.notifications.subscriptions import NotificationDestination
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

# The manifests that an operation carries may hold Secrets, and are large.
LOCAL_MANIFESTS_PATHS: Final = (
    ("operation", "sync", "manifests"),
    ("status", "operationState", "operation", "sync", "manifests"),
)
DriftData = Mapping[str, Any] | None
# argo: default repository and commit for GitHub, unless a template sets them
GITHUB_DEFAULTS: Final = {
    "repoURLPath": "{{.app.spec.source.repoURL}}",
    "revisionPath": "{{.app.status.operationState.syncResult.revision}}",
}


class ConfinedPool(Protocol):
    async def run(self, function: str, payload: Any) -> Any: ...


@dataclass(frozen=True)
class ConditionResult:
    trigger: str
    index: int
    condition: TriggerCondition
    holds: bool
    once_per: str = ""
    fault: str = ""


async def evaluate_conditions(
    pool: ConfinedPool,
    manifest: Manifest,
    triggers: Mapping[str, Sequence[TriggerCondition]],
    settings: NotificationSettings,
    drift: DriftData,
    now: datetime,
    commits: Mapping[str, Any] | None = None,
) -> list[ConditionResult]:
    numbered_conditions = [
        (name, index, condition) for name, conditions in triggers.items() for index, condition in enumerate(conditions)
    ]
    payload = {
        "values": _build_values(manifest, settings, drift),
        "now": now.isoformat(),
        "commits": dict(commits or {}),
    }
    answers = await _run_conditions(pool, payload, [condition for _, _, condition in numbered_conditions])
    return [
        ConditionResult(name, index, condition, answer["holds"], answer["once"], answer["fault"])
        for (name, index, condition), answer in zip(numbered_conditions, answers, strict=True)
    ]


async def _run_conditions(
    pool: ConfinedPool, payload: Mapping[str, Any], conditions: Sequence[TriggerCondition]
) -> list[dict[str, Any]]:
    """Evaluate all conditions in one call; if that fails, evaluate each alone, so that one cannot block the others."""
    if not conditions:
        return []
    texts = [{"when": condition.when, "once": condition.once_per} for condition in conditions]
    try:
        results: list[dict[str, Any]] = await pool.run(EVALUATE_FUNCTION, {**payload, "conditions": texts})
    except UserError as error:
        if len(conditions) == 1:
            return [{"holds": False, "once": "", "fault": str(error)}]
        return [(await _run_conditions(pool, payload, [condition]))[0] for condition in conditions]
    return results


async def render_notification(
    pool: ConfinedPool,
    manifest: Manifest,
    template_names: Sequence[str],
    settings: NotificationSettings,
    destination: NotificationDestination,
    drift: DriftData,
    now: datetime,
    commits: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Render the templates for a destination. Raise UserError if a template is missing or fails."""
    service = settings.services.get(destination.service)
    kind = service.kind if service else destination.service
    templates = [
        _keep_service_fields(_find_template(name, settings), kind, destination.service) for name in template_names
    ]
    values = {
        **_build_values(manifest, settings, drift),
        "serviceType": destination.service,  # argo: the name of the service, which is its type unless it has another
        "recipient": destination.recipient,
    }
    if ".secrets" in str(templates):
        values["secrets"] = dict(settings.secrets)
    payload = {"values": values, "templates": templates, "now": now.isoformat(), "commits": dict(commits or {})}
    answer = await pool.run(RENDER_FUNCTION, payload)
    if fault := answer.get("fault"):
        raise UserError(f"template {', '.join(template_names)}: {fault}")
    notification: dict[str, Any] = answer["notification"]
    return notification


def join_trigger_texts(settings: NotificationSettings, conditions: Sequence[TriggerCondition]) -> str:
    """Concatenate the conditions and their templates, to detect which functions they use."""
    templates = [settings.templates.get(name) for condition in conditions for name in condition.send]
    return f"{conditions}{templates}"


def _find_template(name: str, settings: NotificationSettings) -> Mapping[str, Any]:
    if name not in settings.templates:
        raise UserError(f"template {name} not found; add template.{name} to {constants.SETTINGS_CONFIG_MAP}")
    return settings.templates[name]


def _keep_service_fields(template: Mapping[str, Any], kind: str, service: str) -> dict[str, Any]:
    """Keep only the fields for this service, so that an error in other fields does not block the message."""
    kept_fields = {key: value for key, value in template.items() if key in ("message", kind)}
    service_fields = kept_fields.get(kind)
    if kind == "webhook" and isinstance(service_fields, dict):
        kept_fields[kind] = {name: value for name, value in service_fields.items() if name == service}
    if kind == "github" and isinstance(service_fields, dict):
        kept_fields[kind] = {**GITHUB_DEFAULTS, **service_fields}
    return kept_fields


def _build_values(manifest: Manifest, settings: NotificationSettings, drift: DriftData) -> dict[str, Any]:
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    object_name = "job" if manifest.get("kind") == NOTEBOOK_JOB.kind else "app"
    values = {object_name: {**manifest, "metadata": metadata}, "context": dict(settings.context)}
    if object_name != "app":
        return values
    app = values["app"]
    for path in LOCAL_MANIFESTS_PATHS:
        app = _drop_field(app, path)
    return {**values, "app": app, "drift": drift}


def _drop_field(value: Any, path: Sequence[str]) -> Any:
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: field for name, field in value.items() if name != path[0]}
    return {**value, path[0]: _drop_field(value[path[0]], path[1:])}
