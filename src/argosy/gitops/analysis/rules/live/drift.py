"""Live rules about what differs: by others, by two owners, by a field that cannot be changed, by nobody's sync.

In: a live view. Out: sights. Never: calls something drift that only a controller without rights has not read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.gitops.analysis.cause import Cause, CauseKind, is_by_hand
from argosy.gitops.analysis.evidence import is_immutable, refused_fields
from argosy.gitops.analysis.live_view import Differs, LiveApp, LiveView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.application.operations import Outcome, Progress
from argosy.gitops.status.hold import read_hold
from argosy.kube.names import ResourceKey

BY_OTHERS: Final = (CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING)
_MOST: Final = 3  # fields that are named
_SHARED: Final = re.compile(r"^(?P<what>\S+/\S+) is part of applications (?P<one>\S+) and (?P<other>\S+)$")
_POLLING: Final = 180.0  # argo: seconds after which a host is asked again, with what is added by chance
_FAILED: Final = (Progress.FAILED, Progress.ERROR)


def is_of_others(cause: Cause) -> bool:
    """What people changed by hand is theirs to explain, not a controller's."""
    return cause.kind in BY_OTHERS and not is_by_hand(cause.manager)


def is_acceptable(app: LiveApp) -> bool:
    """OutOfSync by nothing but what others own: the cluster works as it should."""
    return bool(app.sync == "OutOfSync" and app.fields and all(is_of_others(each.cause) for each in app.fields))


def _by_others(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if app.fields is None or not is_acceptable(app):
            continue
        told = in_short(app.fields)
        more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
        state = "acceptable: " if app.health == "Healthy" else ""
        fix = f"silence it with the smallest ignore rule: argosy align {app.name}"
        first = app.fields[0].key
        yield app.sight(f"{state}{'; '.join(told[:_MOST])}{more}", fix, subject=f"{first.kind}/{first.name}")


def in_short(fields: Sequence[Differs]) -> list[str]:
    """`Route/one, Route/two: spec.host, spec.tls set by openshift-router (4 fields)`: what is alike is told once."""
    objects: dict[ResourceKey, list[Differs]] = defaultdict(list)
    for each in fields:
        objects[each.key].append(each)
    alike: dict[tuple[str, str], list[ResourceKey]] = defaultdict(list)
    for key, mine in objects.items():
        paths = [each.shown for each in mine if each.pointer]
        shown = ", ".join(paths[:_MOST]) + (", …" if len(paths) > _MOST else "")
        alike[f"{shown} {_by([each.cause for each in mine])}".strip(), key.kind].append(key)
    told = []
    for (words, _), keys in alike.items():
        count = sum(len(objects[key]) for key in keys)
        names = ", ".join(f"{key.kind}/{key.name}" for key in keys[:_MOST])
        more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
        told.append(f"{names}{more}: {words} ({count} field{'' if count == 1 else 's'})")
    return told


def _by(causes: Sequence[Cause]) -> str:
    managers = Counter(each.manager for each in causes if each.manager)
    if managers:
        return f"set by {', '.join(name for name, _ in managers.most_common(2))}"
    kinds = {each.kind for each in causes}
    return "filled in by a default" if kinds == {CauseKind.DEFAULTING} else "set by admission"


def _immutable(view: LiveView) -> Iterator[Sight]:
    """argo: a SyncError, or the last sync's own words about an object."""
    for app in view.apps:
        if not has_failed(app) and not app.said("SyncError"):
            continue
        for name, message in _refusals(app):
            field = next(iter(refused_fields(message)), "a field")
            text = f"{name}: {field} changed, and cannot be changed while the object lives (immutable)"
            fix = (
                "first look whether Kustomize writes labels into selectors (includeSelectors: true, commonLabels) and"
                " take that back; else have it made anew, which interrupts it: argosy app sync"
                f" {app.name} --force --replace --resource {_chosen(app, name)}"
            )
            yield app.sight(text, fix, subject=name, field=field)


def _refusals(app: LiveApp) -> list[tuple[str, str]]:
    found = {}
    for each in app.app.state.results if app.app.state else ():
        if each.outcome is Outcome.SYNC_FAILED and is_immutable(each.message):
            found[f"{each.key.kind}/{each.key.name}"] = each.message
    said = app.said("SyncError")
    if not found and "field is immutable" in said:
        found["an object"] = said
    return list(found.items())


def _chosen(app: LiveApp, name: str) -> str:
    key = next((row.key for row in app.rows if row.name == name), None)
    return f"{key.group}:{key.kind}:{key.name}" if key else "GROUP:KIND:NAME"


def has_failed(app: LiveApp) -> bool:
    """Its last operation; one that is followed by a good state is history."""
    state = app.app.state
    return state is not None and state.progress in _FAILED and app.sync != "Synced"


def _failed(view: LiveView) -> Iterator[Sight]:
    """What failed otherwise, with the first object that says why."""
    for app in view.apps:
        state = app.app.state
        if state is None or not has_failed(app) or _refusals(app):
            continue
        bad = [each for each in state.results if (each.progress if each.hook else each.outcome) in _WORDS]
        told = f"{bad[0].key.kind}/{bad[0].key.name}: {bad[0].message}" if bad else state.message
        what = f"the sync of {state.revision[:7] or 'its revision'} failed: {told}"
        yield app.sight(what, f"correct what it names, then: argosy app sync {app.name}")


_WORDS: Final = ("SyncFailed", "Failed", "Error")


def _shared(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        said = [message for kind, message in app.conditions if kind == "SharedResourceWarning"]
        for message in said[:1]:
            match = _SHARED.match(message)
            what = match["what"] if match else ""
            other = next((each for each in (match["other"], match["one"]) if each != app.name), "") if match else ""
            more = f" and {len(said) - 1} more" if len(said) > 1 else ""
            text = f"SharedResourceWarning with {other}: {what}{more}" if match else f"SharedResourceWarning: {message}"
            fix = "informational: nothing fails by it; let one Application make it if both ask for different things"
            yield app.sight(text, fix, subject=what)


def _unsynced(view: LiveView) -> Iterator[Sight]:
    """Manual: expected, and a person's turn. Automated: why it does not act."""
    for app in view.apps:
        if app.sync != "OutOfSync" or app.is_busy or has_failed(app) or is_acceptable(app) or app.said("SyncError"):
            continue
        hold = read_hold(app.app.annotations)
        count = sum(row.status == "OutOfSync" for row in app.rows)
        what = f"{count} object{'' if count == 1 else 's'} of {len(app.rows)} differ{'s' if count == 1 else ''}"
        hands, is_new = by_hand(app), app.app.state is None and not app.app.status.get("history")
        if hands and not _heals(app) and not is_new and not (app.is_automated and _by_git(app)):
            yield _edited(app, hands)
        elif (back := app.rollback) is not None:
            held = f"; then end the hold: argosy app release {app.name}" if hold is not None else ""
            fix = f"mend it in Git, and look before you sync: argosy app diff {app.name}{held}"
            yield app.sight(f"{what}: it was {back}", fix, severity=Severity.INFO)
        elif not app.is_automated:
            text = f"{what}; expected: it is synced by hand, and nobody has since"
            text = f"{what}; it is synced by hand, and was not compared from here" if app.fields is None else text
            text = f"never synced, {count} to make; expected: it is synced by hand" if is_new else text
            fix = f"look at the changes, then: argosy app diff {app.name}; argosy app sync {app.name}"
            yield app.sight(text, fix, severity=Severity.INFO)
        elif hold is not None:
            who = f" by {hold.by}" if hold.by else ""
            text = f"{what}, and its automated sync is held{who}{f': {hold.reason}' if hold.reason else ''}"
            yield app.sight(text, f"end the hold: argosy app release {app.name}", severity=Severity.INFO)
        elif (since := _waited(view, app)) is not None:
            text = f"{what}, and its automated sync has not begun for {int(since)} s"
            fix = (
                "see whether spec.syncPolicy.automated is what you mean (selfHeal for changes in the cluster, prune for"
                f" what Git has no more), whether Argo CD polls Git, and try by hand: argosy app sync {app.name}"
            )
            yield app.sight(text, fix)


def _edited(app: LiveApp, hands: Sequence[Differs]) -> Sight:
    """Drift, however it is synced; what Git has changed since then waits beside it."""
    why = "self heal is off" if app.is_automated else "no automated sync puts it back"
    told = "; ".join(in_short(hands)[:_MOST])
    count = _by_git(app)
    more = f"; Git has changed {count} more field{'' if count == 1 else 's'}" if count else ""
    fix = f"restore it: argosy app sync {app.name}; or write the change into Git"
    return app.sight(f"changed by hand, and {why}: {told}{more}", fix, severity=Severity.WARNING)


def _by_git(app: LiveApp) -> int:
    return sum(each.cause.kind is CauseKind.YOUR_CHANGE for each in app.fields or ())


def by_hand(app: LiveApp) -> list[Differs]:
    """What people changed in the cluster; what only lives by a tool of theirs since Git changed is Git's change."""
    found = [each for each in app.fields or () if each.cause.kind is CauseKind.OTHER_CONTROLLER]
    return [each for each in found if is_by_hand(each.cause.manager)]


def _heals(app: LiveApp) -> bool:
    automated = app.app.policy.automated
    return automated is not None and automated.is_on and automated.self_heal


def _waited(view: LiveView, app: LiveApp) -> float | None:
    """How long nothing happened although an automated sync should have; None where it need not, or may still come.

    argo: it syncs a revision once; changes in the cluster are its business with selfHeal only.
    """
    automated, state = app.app.policy.automated, app.app.state
    if automated is None or app.fields is None:
        return None
    kinds = {each.cause.kind for each in app.fields}
    is_due = CauseKind.YOUR_CHANGE in kinds or (automated.self_heal and CauseKind.OTHER_CONTROLLER in kinds)
    since = view.seconds_since(state.finished or state.started) if state else None
    return since if is_due and since is not None and since > 2 * _POLLING else None


RULES: Final = (
    live_rule(
        "AGY501",
        Severity.WARNING,
        "OutOfSync only by fields that others own",
        "Nothing is wrong in the cluster, but the Application never becomes Synced, and real drift hides in the noise.",
        "Each differing field has a cause, found from managedFields and by a dry run: a default, admission, or a"
        " controller. Where a person or Git has changed a single field, this is not said.",
        "Add the smallest ignore rule for these fields; `argosy align` writes it and proves that it is enough.",
        _by_others,
    ),
    live_rule(
        "AGY510",
        Severity.ERROR,
        "A sync fails on a field that cannot be changed",
        "Each sync fails the same way; nothing after it is applied.",
        "The API server refused the change of this very field in the last sync: field is immutable.",
        "Undo the change in Git; Kustomize's includeSelectors is the usual cause. Else have the object made anew"
        " (Force=true,Replace=true): replacing alone is not enough.",
        _immutable,
    ),
    live_rule(
        "AGY511",
        Severity.INFO,
        "Two Applications have one object",
        "Whoever syncs last wins. As long as both ask for the same, nothing fails: a warning, no failure.",
        "Argo CD says so in a condition of the Application: both have it among what they manage.",
        "Let one Application make it.",
        _shared,
    ),
    live_rule(
        "AGY515",
        Severity.WARNING,
        "OutOfSync, and nobody syncs",
        "What Git asks for is not in the cluster.",
        "The Application says OutOfSync and no operation runs. managedFields name the tool of a person: then somebody"
        " changed it by hand. Else, without automated sync, that is expected, and only for your information; with it, a"
        " change of Git has waited longer than Argo CD polls.",
        "Sync it by hand; then look at the sync policy, at holds and at how often Git is polled.",
        _unsynced,
    ),
    live_rule(
        "AGY517",
        Severity.ERROR,
        "The last sync failed",
        "What Git asks for is in the cluster only in part.",
        "The Application's operationState says so, and it has not become Synced since.",
        "Correct what the message names, and sync again.",
        _failed,
    ),
)
