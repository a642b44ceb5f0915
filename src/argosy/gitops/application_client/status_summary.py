"""Summarizes an Application for people: words, rows and one-line reasons.

In: an Application. Out: texts and rows. Never: asks a cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from argosy.gitops.application import Application, OperationState
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.policy.projects import is_project_refusal
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.rollback_detection import ActiveRollback, find_active_rollback
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import read_hold
from argosy.gitops.sync.retry import is_waiting_for_retry
from argosy.kube.resource_key import ResourceKey

NONE_TEXT: Final = "<none>"
SHORT_COMMIT_CHARACTERS: Final = 7  # characters of a commit
# Shortens the repository URL to its name, because the end of the message matters; `argosy app get` shows the URL.
_LOAD_ERROR_PATTERN: Final = re.compile(
    r"^ComparisonError: (?:Failed to load target state: )?(?:\S+://\S*/(?P<name>[^\s/:]+)): "
)
_NUMBERED_CONDITION_PATTERN: Final = re.compile(r"(?: \| |\b)\d+: (?=\w+ \| )")


class ManagedObjectRow(NamedTuple):
    """One managed object as in the status."""

    key: ResourceKey
    status: str = ""
    health: str = ""
    hook: str = ""
    message: str = ""
    wave: int = 0


def read_creation_time(app: Application) -> str:
    return str(as_mapping(app.wire.get("metadata")).get("creationTimestamp") or "")


def read_app_labels(app: Application) -> dict[str, str]:
    wire_labels = as_mapping(as_mapping(app.wire.get("metadata")).get("labels"))
    return {str(name): str(value) for name, value in wire_labels.items()}


def read_sync_status(app: Application) -> str:
    return str(as_mapping(app.status.get("sync")).get("status") or "Unknown")


def read_health_status(app: Application) -> str:
    return str(as_mapping(app.status.get("health")).get("status") or "Unknown")


def read_health_message(app: Application) -> str:
    return str(as_mapping(app.status.get("health")).get("message") or "")


def read_synced_revisions(app: Application) -> list[str]:
    sync = as_mapping(app.status.get("sync"))
    wire_revisions = sync.get("revisions")
    values = wire_revisions if isinstance(wire_revisions, list) and wire_revisions else [sync.get("revision")]
    return [str(revision) for revision in values if revision]


def shorten_revision(revision: str) -> str:
    """argo: shorten a commit to 7 characters; leave other revisions as they are."""
    is_commit = len(revision) >= 40 and all(character in "0123456789abcdef" for character in revision)
    return revision[:SHORT_COMMIT_CHARACTERS] if is_commit else revision


def describe_sync_policy(app: Application) -> str:
    """argo: the word in the column of its list."""
    automated = app.policy.automated
    if automated is None or not automated.is_on:
        return "Manual"
    return "Auto-Prune" if automated.prune else "Auto"


def summarize_conditions(app: Application) -> str:
    """argo: list condition types, with a count if there are several."""
    types = Counter(str(condition.get("type")) for condition in as_mappings(app.status.get("conditions")))
    return ",".join(f"{name}({count})" if count > 1 else name for name, count in types.items()) or NONE_TEXT


def is_busy(app: Application) -> bool:
    """True if an operation is requested or running."""
    return app.operation is not None or (app.state is not None and not app.state.phase.is_over)


def read_deletion_or_operation_start(app: Application) -> str:
    """Return when the deletion or operation that may ask for confirmation started."""
    return app.deletion_timestamp or (
        app.state.started if app.state is not None and not app.state.phase.is_over else ""
    )


def is_only_differing(app: Application) -> bool:
    """True if the only thing to report is that objects differ."""
    has_been_synced = app.state is not None or bool(app.status.get("history"))
    return (
        has_been_synced
        and read_sync_status(app) == "OutOfSync"
        and _describe_raw_problem(app, "") == _describe_difference(app)
    )


def is_only_unhealthy(app: Application) -> bool:
    """True if the only thing to report is an unhealthy object that the message names."""
    return read_health_message(app).startswith("Caused by ") and _describe_raw_problem(app, "") == read_health_message(
        app
    )


def describe_problem(app: Application, detail: str = "", delay: str = "") -> str:
    """Return the most important fact: an error, a delay or a difference; empty if all is well.

    `detail`: how many fields differ or what is unhealthy, if a closer comparison was made. `delay`: the sync window or
    budget that the Application waits for (`delays.describe_delay`).
    """
    text = extract_condition_gist(_describe_raw_problem(app, detail, delay).replace("\n", " "))
    return _LOAD_ERROR_PATTERN.sub(lambda match: f"ComparisonError: {match['name']}: ", text)


def extract_condition_gist(text: str) -> str:
    """argo: some checks list all conditions as `index: type | status | reason | message`: keep the most specific.

    That is the first with a reason and a message; text before the list stays.
    """
    prefix, *entries = _NUMBERED_CONDITION_PATTERN.split(text)
    ranked = sorted((entry.split(" | ") for entry in entries), key=lambda parts: -min(len(parts), 4))
    if len(entries) < 2 or len(ranked[0]) < 3:
        return text
    return f"{prefix}{': '.join(ranked[0][2:])}"


def _describe_raw_problem(app: Application, detail: str, delay: str = "") -> str:
    if app.deletion_timestamp:
        condition = next((item for item in as_mappings(app.status.get("conditions"))), None)
        return f"is being deleted: {condition.get('message')}" if condition else "is being deleted"
    if retry_text := describe_retry(app):
        return retry_text
    if is_busy(app) and delay:
        return delay
    if is_busy(app):
        return app.state.message if app.state and app.state.message and not app.state.phase.is_over else "syncing"
    conditions, hold = _list_conditions(app), read_hold(app.annotations)
    if conditions and _is_error(conditions[0]):
        return f"{conditions[0].get('type')}: {conditions[0].get('message')}"
    if hold is not None:
        return f"held{f' by {hold.by}' if hold.by else ''}{f': {hold.reason}' if hold.reason else ''}"
    if app.state is not None and _last_sync_failed(app):
        return f"last sync {app.state.phase.value.lower()}: {app.state.message}"
    if read_sync_status(app) == "OutOfSync":
        rollback = find_rollback(app)
        difference = str(rollback) if rollback else detail or _describe_difference(app)
        return f"{delay}; {difference}" if delay else difference
    if read_health_status(app) not in ("Healthy", "Unknown") and read_health_message(app):
        return detail or read_health_message(app)
    if delay:
        return delay
    if not app.status:
        return "not reconciled yet; is a controller running?"
    return f"{conditions[0].get('type')}: {conditions[0].get('message')}" if conditions else ""


def list_comparison_errors(app: Application) -> list[str]:
    """List its ComparisonErrors, each on one line."""
    conditions = [
        condition for condition in _list_conditions(app) if condition.get("type") == ConditionType.COMPARISON_ERROR
    ]
    texts = (f"{condition.get('type')}: {condition.get('message')}".replace("\n", " ") for condition in conditions)
    return [_LOAD_ERROR_PATTERN.sub(lambda match: f"ComparisonError: {match['name']}: ", text) for text in texts]


def has_error(app: Application) -> bool:
    """True if it has an error condition, or its last sync failed and it is still not Synced."""
    return any(map(_is_error, _list_conditions(app))) or _last_sync_failed(app)


def _list_conditions(app: Application) -> list[Mapping[str, Any]]:
    """List conditions, errors first, without the SyncError that only repeats the hold."""
    conditions = sorted(as_mappings(app.status.get("conditions")), key=lambda condition: not _is_error(condition))
    if read_hold(app.annotations) is None:
        return conditions
    return [condition for condition in conditions if condition.get("type") != ConditionType.SYNC_ERROR]


def _last_sync_failed(app: Application) -> bool:
    return app.state is not None and app.state.phase in ("Failed", "Error") and read_sync_status(app) != "Synced"


def count_deployments(app: Application) -> int:
    return len(as_mappings(app.status.get("history")))


def find_rollback(app: Application) -> ActiveRollback | None:
    """Return the rollback if Git still desires something else."""
    return find_active_rollback(app.status, app.sources[0].ref or "HEAD") if app.sources else None


def describe_retry(app: Application) -> str:
    """Describe a failed operation that will be retried: revision, time and the command that ends it; else empty.

    argo: a retry keeps its revision, so newer commits wait; Argo CD's own message has neither fact.
    """
    state = app.state
    if state is None or not is_waiting_for_retry(state):
        return ""
    retried_revisions = [state.revision or state.request.sync.revision, *state.revisions]
    revision_text = (
        ", ".join(shorten_revision(revision) for revision in retried_revisions if revision) or "its revision"
    )
    limit = state.request.retry.limit
    attempt = f"attempt {state.retries}{f' of {limit}' if limit > 0 else ''}"
    wait_note = "" if state.request.retry.refresh else ", and newer commits wait"
    advice = f"end it: argosy app terminate-op {app.name}"
    return (
        f"the sync of {revision_text} failed and will be retried at {_format_retry_time(state)} "
        f"({attempt}){wait_note}; {advice}: {_read_message_without_retry(state)}"
    )


def _format_retry_time(state: OperationState) -> str:
    try:
        finished_at = datetime.fromisoformat(state.finished).astimezone(UTC)
    except ValueError:
        return "an unknown time"
    return f"{finished_at + timedelta(seconds=state.request.retry.delay_seconds(state.retries - 1)):%H:%M:%S} UTC"


def _read_message_without_retry(state: OperationState) -> str:
    return state.message.partition(". Retrying attempt #")[0]


def _is_error(condition: Mapping[str, Any]) -> bool:
    try:
        return ConditionType(str(condition.get("type"))).is_error
    except ValueError:
        return False


def _describe_difference(app: Application) -> str:
    all_rows = list_rows(app)
    out_of_sync = [row for row in all_rows if row.status == "OutOfSync"]
    if app.state is None and not app.status.get("history"):
        return f"never synced: {len(out_of_sync)} to create or change"
    if not out_of_sync:
        return "differs"
    more = f" and {len(out_of_sync) - 1} more" if len(out_of_sync) > 1 else ""
    return (
        f"{len(out_of_sync)} of {len(all_rows)} objects differ: "
        f"{out_of_sync[0].key.kind}/{out_of_sync[0].key.name}{more}"
    )


def list_rows(app: Application, health: Mapping[ResourceKey, str] | None = None) -> list[ManagedObjectRow]:
    """List managed objects with the result of the last sync; hooks that ran come last."""
    items = {
        ResourceKey(*(str(item.get(part) or "") for part in ResourceKey._fields)): item
        for item in as_mappings(app.status.get("resources"))
    }
    results = dict(app.state.list_results(items)) if app.state else {}
    rows_by_key: dict[ResourceKey, ManagedObjectRow] = {}
    for key, item in items.items():
        result = results.get(key)
        row_health = str(as_mapping(item.get("health")).get("status") or (health or {}).get(key, ""))
        status = str(item.get("status") or "")
        message = result.message if result else ""
        if item.get("hook") and result is None:
            continue
        if item.get("requiresPruning") and not message:
            message = "ignored (requires pruning)"  # argo: same message
        wave = item.get("syncWave")
        hook = result.hook if result else ""
        row_status = result.hook_phase.value if result and hook and result.hook_phase else status
        if result and not hook and result.result_code and is_busy(app):
            row_status = result.result_code.value  # argo: until the next comparison, the operation's result counts
        rows_by_key[key] = ManagedObjectRow(
            key, row_status, row_health, hook, message, wave if isinstance(wave, int) else 0
        )
    for key, result in results.items():
        if key in rows_by_key and not result.hook:
            continue
        result_word = result.hook_phase.value if result.hook and result.hook_phase else (result.result_code or "")
        wave = rows_by_key[key].wave if key in rows_by_key else 0
        row_health = (health or {}).get(key, "")
        rows_by_key[key] = ManagedObjectRow(key, str(result_word), row_health, result.hook, result.message, wave)
    return list(rows_by_key.values())


def list_failed_tasks(app: Application) -> list[str]:
    """List the failed tasks of the last operation."""
    waves = {row.key: row.wave for row in list_rows(app)}
    lines = []
    for key, result in app.state.list_results(waves) if app.state else ():
        outcome_word = result.hook_phase if result.hook else result.result_code
        if outcome_word in ("SyncFailed", "Failed", "Error"):
            lines.append(f"wave {waves.get(key, 0)}: {key.kind}/{key.name}  {outcome_word}: {result.message}")
    return lines


def is_refused_by_project(app: Application) -> bool:
    """True if the last operation failed because the project forbids a source, a destination or an object."""
    state = app.state
    return state is not None and any(
        map(is_project_refusal, [state.message, *(result.message for result in state.results)])
    )


def format_age(since: str, now: datetime) -> str:
    """k8s: format an age as kubectl does, shortened."""
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return ""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{max(seconds, 0)}s"


def format_go_time(text: str) -> str:
    """argo: format as `2026-01-02 03:04:05 +0000 UTC`."""
    try:
        parsed = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text
    return parsed.strftime("%Y-%m-%d %H:%M:%S +0000 UTC")


def list_health_words(assessments: Mapping[ResourceKey, Assessment]) -> dict[ResourceKey, str]:
    return {key: assessment.health.value for key, assessment in assessments.items() if assessment.health is not None}
