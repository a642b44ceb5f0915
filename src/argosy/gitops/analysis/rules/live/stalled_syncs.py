"""Live rules about stalled work: slow syncs, repeated syncs, operators that do not act.

In: a live view. Out: violations. Never: reports a slow sync without its own history or a fixed limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.analysis.delays import find_budget_delay
from argosy.gitops.analysis.live_view import LiveApp, LiveView, moment, span
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.application.operations import Progress
from argosy.gitops.status.history import deployments
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.objects import Manifest, key_of

ENOUGH: Final = 5  # history entries needed to compute the usual duration
SHORTEST_SYNC: Final = 60.0  # seconds that a sync may take regardless of its history
SHORTEST_REST: Final = 600.0  # seconds that objects may take to become healthy after a sync
TRIES: Final = 3
GRACE: Final = 60.0  # seconds within which an operator should act
TOUCH: Final = "kubectl.kubernetes.io/restartedAt"


# -- longer than usual -------------------------------------------------------------------------------------------------


def usual_seconds(app: LiveApp) -> float | None:
    """Return the 95th percentile of its sync durations; None if there are too few."""
    ends = [(moment(each.started), moment(each.deployed)) for each in deployments(app.app.status)]
    took = sorted((end - start).total_seconds() for start, end in ends if start and end)
    return took[math.ceil(len(took) * 0.95) - 1] if len(took) >= ENOUGH else None


def _slow(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if (removed := _removed(view, app)) is not None:
            yield removed
            continue
        usual = usual_seconds(app)
        since, least, what = _under_way(view, app)
        if usual is None or since is None or since <= max(usual, least):
            continue
        blocker = app.blockers[0].strip() if app.blockers else _said(app)
        text = f"{what} for {span(since)}, but 95% of its syncs took at most {span(usual)}; waiting for: {blocker}"
        fix = f"see what it waits for: argosy explain application/{app.name}"
        end = f"; end it: argosy app terminate-op {app.name}" if app.is_busy else ""
        yield app.sight(text, f"{fix}{end}")


def _removed(view: LiveView, app: LiveApp) -> Sight | None:
    """Report a sync that nobody continues: Argo CD ignores an operation that is not in the Application."""
    state = app.app.state
    if app.app.operation is not None or state is None or state.progress.is_over:
        return None
    since = view.seconds_since(state.started)
    if since is None or since <= SHORTEST_SYNC:
        return None
    text = f"its sync runs for {span(since)}, but its operation was removed from the Application, so it never ends"
    return app.sight(text, f"end it: argosy app terminate-op {app.name}")


def _under_way(view: LiveView, app: LiveApp) -> tuple[float | None, float, str]:
    state = app.app.state
    if app.is_busy and state is not None:
        return view.seconds_since(state.started), SHORTEST_SYNC, "its sync runs"
    if app.health == "Progressing":
        since = str(mapping(app.app.status.get("health")).get("lastTransitionTime") or "")
        return view.seconds_since(since), SHORTEST_REST, "is Progressing"
    return None, 0.0, ""


def _said(app: LiveApp) -> str:
    ill = [row for row in app.rows if row.health == "Progressing"]
    state = app.app.state
    said = state.message.removeprefix("waiting for ") if state else ""
    return (ill[0].name if ill else "") or said or "an unknown object"


# -- repeated syncs -------------------------------------------------------------------------------------------------


def _loops(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        yield from _retries(app)
        yield from _fights(app)


def _retries(app: LiveApp) -> Iterator[Sight]:
    state = app.app.state
    if state is None or state.retries < TRIES or state.progress is Progress.SUCCEEDED:
        return
    said = state.message.partition(". Retrying attempt #")[0]
    revision = state.revision or state.request.sync.revision
    text = f"the sync of {revision[:7] or 'the same revision'} was tried {state.retries + 1} times: {said}"
    is_on = not state.progress.is_over
    fix = f"correct it in Git; newer commits wait until it ends: argosy app terminate-op {app.name}"
    fix += f", or roll back: argosy app rollback {app.name}" if app.has_earlier_deployment else ""
    yield app.sight(text, fix if is_on else f"correct it in Git, then: argosy app sync {app.name}")


def _fights(app: LiveApp) -> Iterator[Sight]:
    """argo: self-heal attempts of a revision are counted in the operation itself."""
    state, automated = app.app.state, app.app.policy.automated
    if state is None or automated is None or not automated.self_heal or state.request.sync.heals < TRIES:
        return
    others = sorted({each.cause.manager for each in app.fields or () if each.cause.manager})
    fields = ", ".join(f"{each.key.kind}/{each.key.name} {each.shown}" for each in (app.fields or ())[:2])
    who = f" overwrites {fields}" if fields else " overwrites a field"
    name = others[0] if others else "another writer"
    text = f"self-heal has synced the same revision {state.request.sync.heals} times: {name}{who} each time"
    fix = f"leave the field to {name} with an ignore rule and RespectIgnoreDifferences=true: argosy align {app.name}"
    yield app.sight(text, fix)


# -- an operator that does not act ------------------------------------------------------------------------------------


def _idle(view: LiveView) -> Iterator[Sight]:
    yield from _argocd(view)
    for app in view.apps:
        for row in app.rows:
            live = view.by_key.get(row.key)
            if live is not None and (late := _behind(view, live)) is not None:
                text = f"{row.name}: its controller has not acted for {span(late)} (observedGeneration is behind)"
                fix = f"check whether the operator of {row.key.kind} runs, and its log"
                yield app.sight(text, fix, subject=row.name)


def _behind(view: LiveView, live: Manifest) -> float | None:
    """Return how long ago the spec changed that its controller has not observed; None if it has, or does not report
    it.
    """
    seen, asked = mapping(live.get("status")).get("observedGeneration"), live["metadata"].get("generation")
    if not isinstance(seen, int) or not isinstance(asked, int) or seen >= asked:
        return None
    since = view.seconds_since(spec_written(live))
    return since if since is not None and since > GRACE else None


def spec_written(live: Mapping[str, Any], *, ignoring: Sequence[str] = ()) -> str:
    """Return when the spec was last written, from managedFields."""
    entries = mappings(mapping(live.get("metadata")).get("managedFields"))
    times = [
        str(each.get("time") or "")
        for each in entries
        if "f:spec" in mapping(each.get("fieldsV1")) and each.get("manager") not in ignoring
    ]
    return max(times, default="")


def _argocd(view: LiveView) -> Iterator[Sight]:
    """Report health checks that are in the ArgoCD resource, but not in argocd-cm."""
    settings = view.settings
    since = view.seconds_since(settings.changed)
    if not settings.owner or not settings.unpropagated or since is None or since <= GRACE:
        return
    keys = ", ".join(settings.unpropagated)
    operator = settings.operator
    pods = "; ".join(operator.pods) or ("none" if operator.is_ready is False else "not visible")
    errors = f"; its log: {operator.errors[-1]}" if operator.errors else ""
    phase = f"; status.phase of the resource: {settings.phase}" if settings.phase else ""
    text = (
        f"health check in ArgoCD CR {settings.owner}, not in ConfigMap argocd-cm: {keys}; operator not reconciling"
        f" (Pods: {pods}{errors}{phase})"
    )
    at = '"$(date +%Y-%m-%dT%H:%M:%S%z)"'
    touch = f"kubectl annotate argocd {settings.owner} -n {settings.namespace} --overwrite {TOUCH}={at}"
    fix = f"check kubectl get deployment,pods -n {operator.namespace or 'openshift-gitops-operator'}; then force a"
    place = Place(f"ArgoCD/{settings.owner}")
    yield Sight(place, text, f"{fix} reconciliation, or run argosy doctor --fix: {touch}", f"ArgoCD/{settings.owner}")


# -- project budgets ------------------------------------------------------------------------------------------------


def _find_over_budget(view: LiveView) -> Iterator[Sight]:
    for app in view.apps:
        if delay := find_budget_delay(app.app, view.budget_uses.get(app.app.project), view.settings.engines):
            yield app.sight(*delay)


def key_name(live: Manifest) -> str:
    key = key_of(live)
    return f"{key.kind}/{key.name}"


RULES: Final = (
    live_rule(
        "AGY502",
        Severity.WARNING,
        "Progressing longer than usual",
        "A sync, or an applied object, hangs: later waves and later commits wait.",
        "It has lasted longer than 95% of the Application's own syncs (at least five are known), and longer than a"
        " minute; or objects are Progressing without a sync for more than ten minutes. The blocking object is named. Or"
        " its operation has run for a minute, and is no longer in the Application.",
        "Check the blocking object; end the sync: argosy app terminate-op.",
        _slow,
    ),
    live_rule(
        "AGY507",
        Severity.WARNING,
        "A sync repeats itself",
        "The same revision is synced repeatedly; newer commits wait, or two writers overwrite each other.",
        "Argo CD counts it: retryCount of the operation, or autoHealAttemptsCount of self heal, is three or more.",
        "Fix the failure; leave a field that another controller owns to it, with an ignore rule.",
        _loops,
    ),
    live_rule(
        "AGY508",
        Severity.ERROR,
        "An operator does not act",
        "The requested change is stored, but never carried out.",
        "The object's observedGeneration is behind its generation, or argocd-cm lacks a setting of the ArgoCD resource,"
        " and the last change is more than 60 s old.",
        "Check whether the operator's Deployment runs, and its log (the GitOps operator is in"
        " openshift-gitops-operator; the controller is the StatefulSet openshift-gitops-application-controller); then"
        " annotate the resource, so that it is reconciled again.",
        _idle,
    ),
    live_rule(
        "AGY525",
        Severity.WARNING,
        "An Application waits because its project is over its budget",
        "Renders and health checks of the project run after those of other projects, so its Applications are reconciled"
        " late.",
        "The controller lists the project in ConfigMap argosy-project-budgets, and a first reconciliation, a refresh or"
        " an operation of the Application is due.",
        "Make the renders and health checks of the project cheaper, or raise fairness.project.budget in argosy-cm.",
        _find_over_budget,
    ),
)
