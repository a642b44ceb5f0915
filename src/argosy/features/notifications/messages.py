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
from argosy.features.notifications import names
from argosy.features.notifications.settings import Condition, Settings
from argosy.features.notifications.subscriptions import Destination
from argosy.features.notifications.template_worker import FILL, JUDGE
from argosy.kube.objects import Manifest

Drift = Mapping[str, Any] | None
# argo: default repository and commit for GitHub, unless a template sets them
GITHUB: Final = {
    "repoURLPath": "{{.app.spec.source.repoURL}}",
    "revisionPath": "{{.app.status.operationState.syncResult.revision}}",
}


class Confined(Protocol):
    async def run(self, function: str, payload: Any) -> Any: ...


@dataclass(frozen=True)
class Judged:
    trigger: str
    place: int
    condition: Condition
    holds: bool
    once_per: str = ""
    fault: str = ""


async def judge_all(
    pool: Confined,
    manifest: Manifest,
    triggers: Mapping[str, Sequence[Condition]],
    settings: Settings,
    drift: Drift,
    now: datetime,
    commits: Mapping[str, Any] | None = None,
) -> list[Judged]:
    asked = [(name, place, each) for name, those in triggers.items() for place, each in enumerate(those)]
    given = {"values": _values(manifest, settings, drift), "now": now.isoformat(), "commits": dict(commits or {})}
    said = await _asked(pool, given, [each for _, _, each in asked])
    return [
        Judged(name, place, each, answer["holds"], answer["once"], answer["fault"])
        for (name, place, each), answer in zip(asked, said, strict=True)
    ]


async def _asked(pool: Confined, given: Mapping[str, Any], conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """Evaluate all conditions in one call; if that fails, evaluate each alone, so that one cannot block the others."""
    if not conditions:
        return []
    texts = [{"when": each.when, "once": each.once_per} for each in conditions]
    try:
        found: list[dict[str, Any]] = await pool.run(JUDGE, {**given, "conditions": texts})
    except UserError as error:
        if len(conditions) == 1:
            return [{"holds": False, "once": "", "fault": str(error)}]
        return [(await _asked(pool, given, [each]))[0] for each in conditions]
    return found


async def compose(
    pool: Confined,
    manifest: Manifest,
    sent: Sequence[str],
    settings: Settings,
    destination: Destination,
    drift: Drift,
    now: datetime,
    commits: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Render the templates for a destination. Raise UserError if a template is missing or fails."""
    service = settings.services.get(destination.service)
    kind = service.kind if service else destination.service
    templates = [_for_service(_template(name, settings), kind, destination.service) for name in sent]
    values = {**_values(manifest, settings, drift), "serviceType": kind, "recipient": destination.recipient}
    if ".secrets" in str(templates):
        values["secrets"] = dict(settings.secrets)
    given = {"values": values, "templates": templates, "now": now.isoformat(), "commits": dict(commits or {})}
    answer = await pool.run(FILL, given)
    if fault := answer.get("fault"):
        raise UserError(f"template {', '.join(sent)}: {fault}")
    found: dict[str, Any] = answer["notification"]
    return found


def texts_of(settings: Settings, conditions: Sequence[Condition]) -> str:
    """Concatenate the conditions and their templates, to detect which functions they use."""
    sent = [settings.templates.get(name) for each in conditions for name in each.send]
    return f"{conditions}{sent}"


def _template(name: str, settings: Settings) -> Mapping[str, Any]:
    if name not in settings.templates:
        raise UserError(f"template {name} not found; add template.{name} to {names.SETTINGS}")
    return settings.templates[name]


def _for_service(template: Mapping[str, Any], kind: str, service: str) -> dict[str, Any]:
    """Keep only the fields for this service, so that an error in other fields does not block the message."""
    found = {key: value for key, value in template.items() if key in ("message", kind)}
    own = found.get(kind)
    if kind == "webhook" and isinstance(own, dict):
        found[kind] = {name: value for name, value in own.items() if name == service}
    if kind == "github" and isinstance(own, dict):
        found[kind] = {**GITHUB, **own}
    return found


def _values(manifest: Manifest, settings: Settings, drift: Drift) -> dict[str, Any]:
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    what = "job" if manifest.get("kind") == names.JOB.kind else "app"
    values = {what: {**manifest, "metadata": metadata}, "context": dict(settings.context)}
    return {**values, "drift": drift} if what == "app" else values
