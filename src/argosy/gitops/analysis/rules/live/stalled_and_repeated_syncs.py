"""Live rules about stalled work: slow syncs, repeated syncs, operators that do not act.

In: a live view. Out: violations. Never: reports a slow sync without its own history or a fixed limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.gitops.analysis.live_view import LiveApplication, LiveView, parse_timestamp, render_duration
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.analysis.worker_budget_sync_window_delays import find_budget_delay
from argosy.gitops.application.operations import OperationPhase
from argosy.gitops.status.history import read_deployments
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, key_of

MIN_HISTORY_ENTRIES: Final = 5  # history entries needed to compute the usual duration
MIN_SLOW_SYNC_SECONDS: Final = 60.0  # seconds that a sync may take regardless of its history
MIN_SLOW_PROGRESS_SECONDS: Final = 600.0  # seconds that objects may take to become healthy after a sync
MIN_REPEATED_ATTEMPTS: Final = 3
OPERATOR_GRACE_SECONDS: Final = 60.0  # seconds within which an operator should act
RESTARTED_AT_ANNOTATION: Final = "kubectl.kubernetes.io/restartedAt"


# -- longer than usual -------------------------------------------------------------------------------------------------


def compute_usual_sync_seconds(app: LiveApplication) -> float | None:
    """Return the 95th percentile of its sync durations; None if there are too few."""
    periods = [
        (parse_timestamp(deployment.started), parse_timestamp(deployment.deployed))
        for deployment in read_deployments(app.app.status)
    ]
    durations = sorted((end - start).total_seconds() for start, end in periods if start and end)
    return durations[math.ceil(len(durations) * 0.95) - 1] if len(durations) >= MIN_HISTORY_ENTRIES else None


def _find_slow_syncs(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if (abandoned := _find_abandoned_sync(view, app)) is not None:
            yield abandoned
            continue
        usual_duration = compute_usual_sync_seconds(app)
        elapsed, minimum, activity = _describe_activity(view, app)
        if usual_duration is None or elapsed is None or elapsed <= max(usual_duration, minimum):
            continue
        blocker = app.blockers[0].strip() if app.blockers else _describe_blocker(app)
        text = (
            f"{activity} for {render_duration(elapsed)}, but 95% of its syncs took at most "
            f"{render_duration(usual_duration)}; waiting for: {blocker}"
        )
        fix = f"see what it waits for: argosy explain application/{app.name}"
        end = f"; end it: argosy app terminate-op {app.name}" if app.has_running_operation else ""
        yield app.build_violation(text, f"{fix}{end}")


def _find_abandoned_sync(view: LiveView, app: LiveApplication) -> Violation | None:
    """Report a sync that nobody continues: Argo CD ignores an operation that is not in the Application."""
    state = app.app.state
    if app.app.operation is not None or state is None or state.phase.is_over:
        return None
    elapsed = view.seconds_since(state.started)
    if elapsed is None or elapsed <= MIN_SLOW_SYNC_SECONDS:
        return None
    text = (
        f"its sync runs for {render_duration(elapsed)}, but its operation was removed from the Application, so "
        "it never ends"
    )
    return app.build_violation(text, f"end it: argosy app terminate-op {app.name}")


def _describe_activity(view: LiveView, app: LiveApplication) -> tuple[float | None, float, str]:
    state = app.app.state
    if app.has_running_operation and state is not None:
        return view.seconds_since(state.started), MIN_SLOW_SYNC_SECONDS, "its sync runs"
    if app.health == "Progressing":
        since = str(as_mapping(app.app.status.get("health")).get("lastTransitionTime") or "")
        return view.seconds_since(since), MIN_SLOW_PROGRESS_SECONDS, "is Progressing"
    return None, 0.0, ""


def _describe_blocker(app: LiveApplication) -> str:
    progressing = [resource for resource in app.resources if resource.health == "Progressing"]
    state = app.app.state
    message = state.message.removeprefix("waiting for ") if state else ""
    return (progressing[0].name if progressing else "") or message or "an unknown object"


# -- repeated syncs -------------------------------------------------------------------------------------------------


def _find_repeated_syncs(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        yield from _find_repeated_retries(app)
        yield from _find_repeated_self_heals(app)


def _find_repeated_retries(app: LiveApplication) -> Iterator[Violation]:
    state = app.app.state
    if state is None or state.retries < MIN_REPEATED_ATTEMPTS or state.phase is OperationPhase.SUCCEEDED:
        return
    message = state.message.partition(". Retrying attempt #")[0]
    revision = state.revision or state.request.sync.revision
    text = f"the sync of {revision[:7] or 'the same revision'} was tried {state.retries + 1} times: {message}"
    is_running = not state.phase.is_over
    fix = f"correct it in Git; newer commits wait until it ends: argosy app terminate-op {app.name}"
    fix += f", or roll back: argosy app rollback {app.name}" if app.has_earlier_deployment else ""
    yield app.build_violation(text, fix if is_running else f"correct it in Git, then: argosy app sync {app.name}")


def _find_repeated_self_heals(app: LiveApplication) -> Iterator[Violation]:
    """argo: self-heal attempts of a revision are counted in the operation itself."""
    state, automated = app.app.state, app.app.policy.automated
    if (
        state is None
        or automated is None
        or not automated.self_heal
        or state.request.sync.heal_attempts < MIN_REPEATED_ATTEMPTS
    ):
        return
    managers = sorted({field.cause.manager for field in app.differing_fields or () if field.cause.manager})
    fields = ", ".join(
        f"{field.key.kind}/{field.key.name} {field.display_path}" for field in (app.differing_fields or ())[:2]
    )
    action = f" overwrites {fields}" if fields else " overwrites a field"
    name = managers[0] if managers else "another writer"
    text = f"self-heal has synced the same revision {state.request.sync.heal_attempts} times: {name}{action} each time"
    fix = f"leave the field to {name} with an ignore rule and RespectIgnoreDifferences=true: argosy align {app.name}"
    yield app.build_violation(text, fix)


# -- an operator that does not act ------------------------------------------------------------------------------------


def _find_stalled_operators(view: LiveView) -> Iterator[Violation]:
    yield from _find_unpropagated_settings(view)
    for app in view.apps:
        for resource in app.resources:
            live = view.by_key.get(resource.key)
            if live is not None and (delay := _find_observation_delay(view, live)) is not None:
                text = (
                    f"{resource.name}: its controller has not acted for {render_duration(delay)} "
                    "(observedGeneration is behind)"
                )
                fix = f"check whether the operator of {resource.key.kind} runs, and its log"
                yield app.build_violation(text, fix, subject=resource.name)


def _find_observation_delay(view: LiveView, live: Manifest) -> float | None:
    """Return how long ago the spec changed that its controller has not observed; None if it has, or does not report
    it.
    """
    observed_generation, generation = (
        as_mapping(live.get("status")).get("observedGeneration"),
        live["metadata"].get("generation"),
    )
    if not isinstance(observed_generation, int) or not isinstance(generation, int) or observed_generation >= generation:
        return None
    elapsed = view.seconds_since(find_last_spec_write_time(live))
    return elapsed if elapsed is not None and elapsed > OPERATOR_GRACE_SECONDS else None


def find_last_spec_write_time(live: Mapping[str, Any], *, ignored_managers: Sequence[str] = ()) -> str:
    """Return when the spec was last written, from managedFields."""
    entries = as_mappings(as_mapping(live.get("metadata")).get("managedFields"))
    times = [
        str(entry.get("time") or "")
        for entry in entries
        if "f:spec" in as_mapping(entry.get("fieldsV1")) and entry.get("manager") not in ignored_managers
    ]
    return max(times, default="")


def _find_unpropagated_settings(view: LiveView) -> Iterator[Violation]:
    """Report health checks that are in the ArgoCD resource, but not in argocd-cm."""
    settings = view.settings
    elapsed = view.seconds_since(settings.changed_at)
    if not settings.owner or not settings.missing_keys or elapsed is None or elapsed <= OPERATOR_GRACE_SECONDS:
        return
    keys = ", ".join(settings.missing_keys)
    operator = settings.operator
    pods = "; ".join(operator.pods) or ("none" if operator.is_ready is False else "not visible")
    errors = f"; its log: {operator.errors[-1]}" if operator.errors else ""
    phase = f"; status.phase of the resource: {settings.phase}" if settings.phase else ""
    text = (
        f"health check in ArgoCD CR {settings.owner}, not in ConfigMap argocd-cm: {keys}; operator not reconciling"
        f" (Pods: {pods}{errors}{phase})"
    )
    date_expression = '"$(date +%Y-%m-%dT%H:%M:%S%z)"'
    annotate_command = (
        f"kubectl annotate argocd {settings.owner} -n {settings.namespace} --overwrite "
        f"{RESTARTED_AT_ANNOTATION}={date_expression}"
    )
    fix = f"check kubectl get deployment,pods -n {operator.namespace or 'openshift-gitops-operator'}; then force a"
    location = FileLocation(f"ArgoCD/{settings.owner}")
    yield Violation(
        location,
        text,
        f"{fix} reconciliation, or run argosy doctor --fix: {annotate_command}",
        f"ArgoCD/{settings.owner}",
    )


# -- project budgets ------------------------------------------------------------------------------------------------


def _find_apps_delayed_by_budget(view: LiveView) -> Iterator[Violation]:
    for app in view.apps:
        if delay := find_budget_delay(app.app, view.budget_uses.get(app.app.project), view.settings.engines):
            yield app.build_violation(*delay)


def render_key(live: Manifest) -> str:
    key = key_of(live)
    return f"{key.kind}/{key.name}"


RULES: Final = (
    build_live_rule(
        "AGY502",
        Severity.WARNING,
        "Progressing longer than usual",
        "A sync, or an applied object, hangs: later waves and later commits wait.",
        "It has lasted longer than 95% of the Application's own syncs (at least five are known), and longer than a"
        " minute; or objects are Progressing without a sync for more than ten minutes. The blocking object is named. Or"
        " its operation has run for a minute, and is no longer in the Application.",
        "Check the blocking object; end the sync: argosy app terminate-op.",
        _find_slow_syncs,
    ),
    build_live_rule(
        "AGY507",
        Severity.WARNING,
        "A sync repeats itself",
        "The same revision is synced repeatedly; newer commits wait, or two writers overwrite each other.",
        "Argo CD counts it: retryCount of the operation, or autoHealAttemptsCount of self heal, is three or more.",
        "Fix the failure; leave a field that another controller owns to it, with an ignore rule.",
        _find_repeated_syncs,
    ),
    build_live_rule(
        "AGY508",
        Severity.ERROR,
        "An operator does not act",
        "The requested change is stored, but never carried out.",
        "The object's observedGeneration is behind its generation, or argocd-cm lacks a setting of the ArgoCD resource,"
        " and the last change is more than 60 s old.",
        "Check whether the operator's Deployment runs, and its log (the GitOps operator is in"
        " openshift-gitops-operator; the controller is the StatefulSet openshift-gitops-application-controller); then"
        " annotate the resource, so that it is reconciled again.",
        _find_stalled_operators,
    ),
    build_live_rule(
        "AGY525",
        Severity.WARNING,
        "An Application waits because its project is over its budget",
        "Renders and health checks of the project run after those of other projects, so its Applications are reconciled"
        " late.",
        "The controller lists the project in ConfigMap argosy-project-budgets, and a first reconciliation, a refresh or"
        " an operation of the Application is due.",
        "Make the renders and health checks of the project cheaper, or raise fairness.project.budget in argosy-cm.",
        _find_apps_delayed_by_budget,
    ),
)
