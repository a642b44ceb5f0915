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
from argosy.gitops.policy.projects import is_refusal
from argosy.gitops.status.conditions import ConditionType
from argosy.gitops.status.hold import read_hold
from argosy.gitops.status.rollback import Rollback, rollback_of
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.gitops.sync.retry import is_resting
from argosy.kube.names import ResourceKey

NONE: Final = "<none>"
SHORT: Final = 7  # characters of a commit
# Shortens the repository URL to its name, because the end of the message matters; `argosy app get` shows the URL.
_LOADING: Final = re.compile(r"^ComparisonError: (?:Failed to load target state: )?(?:\S+://\S*/(?P<name>[^\s/:]+)): ")
_PLACED: Final = re.compile(r"(?: \| |\b)\d+: (?=\w+ \| )")


class Row(NamedTuple):
    """One managed object as in the status."""

    key: ResourceKey
    status: str = ""
    health: str = ""
    hook: str = ""
    message: str = ""
    wave: int = 0


def created(app: Application) -> str:
    return str(mapping(app.wire.get("metadata")).get("creationTimestamp") or "")


def labels(app: Application) -> dict[str, str]:
    found = mapping(mapping(app.wire.get("metadata")).get("labels"))
    return {str(name): str(value) for name, value in found.items()}


def sync_word(app: Application) -> str:
    return str(mapping(app.status.get("sync")).get("status") or "Unknown")


def health_word(app: Application) -> str:
    return str(mapping(app.status.get("health")).get("status") or "Unknown")


def health_message(app: Application) -> str:
    return str(mapping(app.status.get("health")).get("message") or "")


def revisions(app: Application) -> list[str]:
    sync = mapping(app.status.get("sync"))
    many = sync.get("revisions")
    found = many if isinstance(many, list) and many else [sync.get("revision")]
    return [str(each) for each in found if each]


def short(revision: str) -> str:
    """argo: shorten a commit to 7 characters; leave other revisions as they are."""
    is_commit = len(revision) >= 40 and all(sign in "0123456789abcdef" for sign in revision)
    return revision[:SHORT] if is_commit else revision


def policy_word(app: Application) -> str:
    """argo: the word in the column of its list."""
    automated = app.policy.automated
    if automated is None or not automated.is_on:
        return "Manual"
    return "Auto-Prune" if automated.prune else "Auto"


def conditions_word(app: Application) -> str:
    """argo: list condition types, with a count if there are several."""
    types = Counter(str(each.get("type")) for each in mappings(app.status.get("conditions")))
    return ",".join(f"{name}({count})" if count > 1 else name for name, count in types.items()) or NONE


def is_busy(app: Application) -> bool:
    """True if an operation is requested or running."""
    return app.operation is not None or (app.state is not None and not app.state.progress.is_over)


def deletes_since(app: Application) -> str:
    """Return when the deletion or operation that may ask for confirmation started."""
    return app.deleted or (app.state.started if app.state is not None and not app.state.progress.is_over else "")


def is_only_differing(app: Application) -> bool:
    """True if the only thing to report is that objects differ."""
    has_been_synced = app.state is not None or bool(app.status.get("history"))
    return has_been_synced and sync_word(app) == "OutOfSync" and _why(app, "") == _differing(app)


def is_only_ill(app: Application) -> bool:
    """True if the only thing to report is an unhealthy object that the message names."""
    return health_message(app).startswith("Caused by ") and _why(app, "") == health_message(app)


def why(app: Application, found: str = "", delay: str = "") -> str:
    """Return the most important fact: an error, a delay or a difference; empty if all is well.

    `detail`: how many fields differ or what is unhealthy, if a closer comparison was made. `delay`: the sync window or
    budget that the Application waits for (`delays.describe_delay`).
    """
    text = gist(_why(app, found, delay).replace("\n", " "))
    return _LOADING.sub(lambda at: f"ComparisonError: {at['name']}: ", text)


def gist(text: str) -> str:
    """argo: some checks list all conditions as `index: type | status | reason | message`: keep the most specific.

    That is the first with a reason and a message; text before the list stays.
    """
    before, *found = _PLACED.split(text)
    told = sorted((each.split(" | ") for each in found), key=lambda parts: -min(len(parts), 4))
    if len(found) < 2 or len(told[0]) < 3:
        return text
    return f"{before}{': '.join(told[0][2:])}"


def _why(app: Application, found: str, delay: str = "") -> str:
    if app.deleted:
        told = next((each for each in mappings(app.status.get("conditions"))), None)
        return f"is being deleted: {told.get('message')}" if told else "is being deleted"
    if again := retrying(app):
        return again
    if is_busy(app) and delay:
        return delay
    if is_busy(app):
        return app.state.message if app.state and app.state.message and not app.state.progress.is_over else "syncing"
    conditions, hold = _conditions(app), read_hold(app.annotations)
    if conditions and _is_error(conditions[0]):
        return f"{conditions[0].get('type')}: {conditions[0].get('message')}"
    if hold is not None:
        return f"held{f' by {hold.by}' if hold.by else ''}{f': {hold.reason}' if hold.reason else ''}"
    if app.state is not None and _last_sync_failed(app):
        return f"last sync {app.state.progress.value.lower()}: {app.state.message}"
    if sync_word(app) == "OutOfSync":
        back = rolled_back(app)
        differs = str(back) if back else found or _differing(app)
        return f"{delay}; {differs}" if delay else differs
    if health_word(app) not in ("Healthy", "Unknown") and health_message(app):
        return found or health_message(app)
    if delay:
        return delay
    if not app.status:
        return "not reconciled yet; is a controller running?"
    return f"{conditions[0].get('type')}: {conditions[0].get('message')}" if conditions else ""


def comparison_errors(app: Application) -> list[str]:
    """List its ComparisonErrors, each on one line."""
    found = [each for each in _conditions(app) if each.get("type") == ConditionType.COMPARISON_ERROR]
    texts = (f"{each.get('type')}: {each.get('message')}".replace("\n", " ") for each in found)
    return [_LOADING.sub(lambda at: f"ComparisonError: {at['name']}: ", text) for text in texts]


def has_error(app: Application) -> bool:
    """True if it has an error condition, or its last sync failed and it is still not Synced."""
    return any(map(_is_error, _conditions(app))) or _last_sync_failed(app)


def _conditions(app: Application) -> list[Mapping[str, Any]]:
    """List conditions, errors first, without the SyncError that only repeats the hold."""
    found = sorted(mappings(app.status.get("conditions")), key=lambda each: not _is_error(each))
    if read_hold(app.annotations) is None:
        return found
    return [each for each in found if each.get("type") != ConditionType.SYNC_ERROR]


def _last_sync_failed(app: Application) -> bool:
    return app.state is not None and app.state.progress in ("Failed", "Error") and sync_word(app) != "Synced"


def deployment_count(app: Application) -> int:
    return len(mappings(app.status.get("history")))


def rolled_back(app: Application) -> Rollback | None:
    """Return the rollback if Git still desires something else."""
    return rollback_of(app.status, app.sources[0].ref or "HEAD") if app.sources else None


def retrying(app: Application) -> str:
    """Describe a failed operation that will be retried: revision, time and the command that ends it; else empty.

    argo: a retry keeps its revision, so newer commits wait; Argo CD's own message has neither fact.
    """
    state = app.state
    if state is None or not is_resting(state):
        return ""
    revisions = [state.revision or state.request.sync.revision, *state.revisions]
    what = ", ".join(short(each) for each in revisions if each) or "its revision"
    limit = state.request.retry.limit
    number = f"attempt {state.retries}{f' of {limit}' if limit > 0 else ''}"
    held = "" if state.request.retry.refresh else ", and newer commits wait"
    way = f"end it: argosy app terminate-op {app.name}"
    return f"the sync of {what} failed and will be retried at {_due(state)} ({number}){held}; {way}: {_failure(state)}"


def _due(state: OperationState) -> str:
    try:
        ended = datetime.fromisoformat(state.finished).astimezone(UTC)
    except ValueError:
        return "an unknown time"
    return f"{ended + timedelta(seconds=state.request.retry.delay(state.retries - 1)):%H:%M:%S} UTC"


def _failure(state: OperationState) -> str:
    return state.message.partition(". Retrying attempt #")[0]


def _is_error(condition: Mapping[str, Any]) -> bool:
    try:
        return ConditionType(str(condition.get("type"))).is_error
    except ValueError:
        return False


def _differing(app: Application) -> str:
    found = rows(app)
    wrong = [row for row in found if row.status == "OutOfSync"]
    if app.state is None and not app.status.get("history"):
        return f"never synced: {len(wrong)} to create or change"
    if not wrong:
        return "differs"
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return f"{len(wrong)} of {len(found)} objects differ: {wrong[0].key.kind}/{wrong[0].key.name}{more}"


def rows(app: Application, health: Mapping[ResourceKey, str] | None = None) -> list[Row]:
    """List managed objects with the result of the last sync; hooks that ran come last."""
    results = {each.key: each for each in app.state.results} if app.state else {}
    found: dict[ResourceKey, Row] = {}
    for each in mappings(app.status.get("resources")):
        key = ResourceKey(*(str(each.get(part) or "") for part in ResourceKey._fields))
        result = results.get(key)
        fares = str(mapping(each.get("health")).get("status") or (health or {}).get(key, ""))
        status = str(each.get("status") or "")
        message = result.message if result else ""
        if each.get("hook") and result is None:
            continue
        if each.get("requiresPruning") and not message:
            message = "ignored (requires pruning)"  # argo: same message
        wave = each.get("syncWave")
        hook = result.hook if result else ""
        shown = result.progress.value if result and hook and result.progress else status
        if result and not hook and result.outcome and is_busy(app):
            shown = result.outcome.value  # argo: until the next comparison, the operation's result counts
        found[key] = Row(key, shown, fares, hook, message, wave if isinstance(wave, int) else 0)
    for result in results.values():
        if result.key in found and not result.hook:
            continue
        word = result.progress.value if result.hook and result.progress else (result.outcome or "")
        wave = found[result.key].wave if result.key in found else 0
        fares = (health or {}).get(result.key, "")
        found[result.key] = Row(result.key, str(word), fares, result.hook, result.message, wave)
    return list(found.values())


def failures(app: Application) -> list[str]:
    """List the failed tasks of the last operation."""
    waves = {row.key: row.wave for row in rows(app)}
    found = []
    for each in app.state.results if app.state else ():
        word = each.progress if each.hook else each.outcome
        if word in ("SyncFailed", "Failed", "Error"):
            found.append(f"wave {waves.get(each.key, 0)}: {each.key.kind}/{each.key.name}  {word}: {each.message}")
    return found


def is_refused_by_project(app: Application) -> bool:
    """True if the last operation failed because the project forbids a source, a destination or an object."""
    state = app.state
    return state is not None and any(map(is_refusal, [state.message, *(result.message for result in state.results)]))


def age(since: str, now: datetime) -> str:
    """k8s: format an age as kubectl does, shortened."""
    try:
        seconds = int((now - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return ""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{max(seconds, 0)}s"


def go_time(text: str) -> str:
    """argo: format as `2026-01-02 03:04:05 +0000 UTC`."""
    try:
        parsed = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text
    return parsed.strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
