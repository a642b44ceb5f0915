"""Evaluates promotion gates: may a release go to the next environment?

In: gates and the facts about them. Out: one GateResult per gate. Never: opens a gate because a fact is unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.promotion_log_trailers import PromotionAction, PromotionLogEntry, find_latest
from argosy.features.promote.promotion_pipeline import ANYBODY_ROLE, PromotionPipeline
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, PromotionGate

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
WAIT_ADVICE: Final = "wait, and run it again"
MAX_CLOCK_SKEW_SECONDS: Final = 5.0


@dataclass(frozen=True)
class GateResult:
    gate: str  # as shown to users: `soak 1h`
    is_open: bool
    reason: str
    opened_by: str = ""  # the people or groups that can open it
    next_command: str = ""  # the command to run next
    kind: str = ""


@dataclass(frozen=True)
class EnvironmentState:
    """The state of an environment as its Application in the cluster reports it."""

    health: str = ""
    health_since: datetime | None = None  # last transition of the health
    sync: str = ""
    runs_release: bool | None = None  # the deployed revision contains the release; None: this clone lacks the revision
    revision: str = ""  # deployed last; Git may be ahead
    deployed_at: datetime | None = None  # time of that deployment
    hold: str = ""  # a hold on the Application, as a sentence
    sync_failure: str = ""  # a failed sync after that deployment
    ran_release_before: bool = False  # a later revision replaced the release
    is_unpushed: bool = False  # the release is only in this clone
    rollback_note: str = ""  # message about a rollback, while Git still has the newer revision


@dataclass(frozen=True)
class NotebookRun:
    """The last run of a NotebookValidationJob."""

    phase: str
    finished_at: datetime | None = None
    message: str = ""


@dataclass(frozen=True)
class GateFacts:
    """Facts for the evaluation of gates. If `source` is None, `unavailable_reason` says why there is no data."""

    now: datetime
    log: Sequence[PromotionLogEntry] = ()
    release: Release | None = None
    released_at: datetime | None = None  # commit time of the release
    run_check: Callable[[], tuple[bool, str]] | None = None  # returns (passed, message)
    source: EnvironmentState | None = None
    target: EnvironmentState | None = None
    notebooks: dict[str, NotebookRun | None] | None = None
    unavailable_reason: str = ""  # why there is no cluster data: no cluster, or no Application
    unpulled_entry: str = ""  # a log entry about the target on the upstream branch that is not pulled yet


def evaluate_gates(
    pipeline: PromotionPipeline, source: DeliveryEnvironment, target: DeliveryEnvironment, facts: GateFacts
) -> list[GateResult]:
    """Evaluate holds first, then the gates in the order of the file."""
    results = [*list_holds(target, facts)]
    return [*results, *(_evaluate_gate(gate, pipeline, source, target, facts) for gate in target.gates)]


def choose_next_command(closed: Sequence[GateResult]) -> str:
    """Choose the command to run first. Waiting comes last, because other gates can be opened meanwhile."""
    commands = [item.next_command for item in closed if item.next_command]
    return next((item for item in commands if item != WAIT_ADVICE), commands[0] if commands else "")


def render_gate(gate: PromotionGate) -> str:
    if gate.kind == "healthy" and parse_duration(gate.value) == 0:
        return gate.kind
    if gate.kind == "approval":
        return f"approval ({gate.value or 'anybody'})"
    return f"{gate.kind} {gate.value}".rstrip()


def describe_following_gates(pipeline: PromotionPipeline, target: DeliveryEnvironment) -> list[str]:
    """Describe the gates of the environments directly after this one, with their approvers."""
    sentences = []
    for environment in pipeline.environments:
        if environment.after == target.name and environment.gates:
            gates = ", ".join(_render_gate_with_approvers(gate, pipeline) for gate in environment.gates)
            sentences.append(f"{environment.name} requires {gates}")
    return sentences


def _render_gate_with_approvers(gate: PromotionGate, pipeline: PromotionPipeline) -> str:
    if gate.kind != "approval":
        return render_gate(gate)
    role = pipeline.find_role(gate.value)
    approvers = (
        "anybody who may push" if gate.value == ANYBODY_ROLE else ", ".join(role.groups) if role else "nobody yet"
    )
    return f"approval by {gate.value or 'anybody'} ({approvers})"


def list_holds(target: DeliveryEnvironment, facts: GateFacts) -> list[GateResult]:
    results = list_log_holds(target, facts)
    if facts.target and facts.target.hold:
        command = f"argosy app release {target.application}"
        results.append(GateResult("hold", False, facts.target.hold, next_command=command, kind="hold"))
    return results


def list_log_holds(target: DeliveryEnvironment, facts: GateFacts) -> list[GateResult]:
    """List log entries that block promotions and rollbacks: unpulled entries, a hold, a rollback of the release."""
    results = (
        [GateResult("log", False, facts.unpulled_entry, next_command="git pull", kind="log")]
        if facts.unpulled_entry
        else []
    )
    advice = f"argosy promote resume {target.name}"
    hold = find_latest(facts.log, target.name, PromotionAction.HOLD, PromotionAction.RESUME)
    if hold and hold.action is PromotionAction.HOLD:
        reason = f"held by {hold.actor.name}: {hold.reason or 'no reason given'}"
        results.append(GateResult("hold", False, reason, next_command=advice, kind="hold"))
    for rollback in _iterate_rollbacks_since_resume(target, facts.log):
        if facts.release and _is_same_release(rollback.replaced, facts.release):
            reason = f"from {facts.release.name}, by {rollback.actor.name}: {rollback.reason or 'no reason given'}"
            return [*results, GateResult("rolled back", False, reason, next_command=advice, kind="hold")]
    return results


def evaluate_renewed_approvals(
    pipeline: PromotionPipeline, target: DeliveryEnvironment, facts: GateFacts
) -> list[GateResult]:
    """A release that was rolled back needs a new approval: a rollback voids the approvals it had."""
    if not any(entry.environment == target.name and is_rollback_of(entry, facts.release) for entry in facts.log):
        return []
    results = [
        _evaluate_approval(render_gate(item), item, pipeline, target, facts)
        for item in target.gates
        if item.kind == "approval"
    ]
    name = facts.release.name if facts.release else ""
    advice = f"argosy promote approve {name} --to {target.name}"
    return [
        replace(item, next_command=advice) if item.next_command == _build_approve_command(target) else item
        for item in results
    ]


def is_rollback_of(entry: PromotionLogEntry, release: Release | None) -> bool:
    """True if the entry is a rollback of this release."""
    return entry.action is PromotionAction.ROLLBACK and _is_same_release(entry.replaced, release)


def _iterate_rollbacks_since_resume(
    target: DeliveryEnvironment, log: Sequence[PromotionLogEntry]
) -> Iterator[PromotionLogEntry]:
    """Newest first, back to the last resume of the environment."""
    for entry in log:
        if entry.environment == target.name and entry.action is PromotionAction.RESUME:
            return
        if entry.environment == target.name and entry.action is PromotionAction.ROLLBACK:
            yield entry


def _is_same_release(release: Release | None, other: Release | None) -> bool:
    return release is not None and other is not None and release.commit == other.commit


def _evaluate_gate(
    gate: PromotionGate,
    pipeline: PromotionPipeline,
    source: DeliveryEnvironment,
    target: DeliveryEnvironment,
    facts: GateFacts,
) -> GateResult:
    name = render_gate(gate)
    if gate.kind == "check":
        is_green, reason = facts.run_check() if facts.run_check else (False, "unknown: the check did not run")
        return GateResult(name, is_green, reason, next_command="" if is_green else "argosy check", kind=gate.kind)
    if gate.kind == "approval":
        return _evaluate_approval(name, gate, pipeline, target, facts)
    if facts.source is None:
        return GateResult(name, False, f"unknown: {facts.unavailable_reason or 'no cluster'}", kind=gate.kind)
    if gate.kind == "notebook":
        return _require_running_release(name, gate, source, facts.source) or _evaluate_notebook(
            name, gate, source, facts
        )
    return _require_running_release(name, gate, source, facts.source) or _evaluate_healthy_or_soak(
        name, gate, source, facts.source, facts
    )


def _evaluate_approval(
    name: str, gate: PromotionGate, pipeline: PromotionPipeline, target: DeliveryEnvironment, facts: GateFacts
) -> GateResult:
    role = pipeline.find_role(gate.value)
    members = role.groups if role else ()
    approvers = "anybody who may push" if gate.value == ANYBODY_ROLE else ", ".join(members)
    if gate.value != ANYBODY_ROLE and not members:
        reason = f"nobody has the role {gate.value}"
        advice = f"add rbac.roles.{gate.value}.groups to {pipeline.defined_in}"
        return GateResult(name, False, reason, "", advice, gate.kind)
    for entry in facts.log:
        if entry.environment != target.name:
            continue
        if is_rollback_of(entry, facts.release):
            return GateResult(
                name,
                False,
                "not approved since it was rolled back",
                approvers,
                _build_approve_command(target),
                gate.kind,
            )
        if not _is_same_release(entry.release, facts.release):
            continue
        if entry.action is PromotionAction.REJECT:
            reason = f"rejected by {entry.actor.name}: {entry.reason or 'no reason given'}"
            return GateResult(name, False, reason, approvers, _build_approve_command(target), gate.kind)
        if entry.action is PromotionAction.APPROVE and (
            gate.value == ANYBODY_ROLE or entry.actor.is_member_of(members)
        ):
            since = _format_age(facts.now, datetime.fromtimestamp(entry.unix_seconds, facts.now.tzinfo))
            reason = f"approved by {entry.actor.name}{since} ({entry.actor.authentication_note})"
            return GateResult(name, True, reason, approvers, kind=gate.kind)
    return GateResult(name, False, "not approved yet", approvers, _build_approve_command(target), gate.kind)


def _build_approve_command(target: DeliveryEnvironment) -> str:
    return f"argosy promote approve --to {target.name}"


def _evaluate_notebook(name: str, gate: PromotionGate, source: DeliveryEnvironment, facts: GateFacts) -> GateResult:
    run = (facts.notebooks or {}).get(gate.value)
    job_text = f"NotebookValidationJob/{gate.value} in {source.namespace}"
    if run is None:
        return GateResult(
            name, False, f"{job_text} not found", next_command=f"add that job to {source.path}", kind=gate.kind
        )
    rerun_command = f"argosy notebook trigger {gate.value} -n {source.namespace}"
    if run.phase != "Succeeded":
        reason = f"{job_text} {f'is {run.phase}' if run.phase else 'has not run yet'}" + (
            f": {run.message}" if run.message else ""
        )
        return GateResult(name, False, reason, next_command=rerun_command, kind=gate.kind)
    if run.finished_at is None or (facts.released_at and run.finished_at < facts.released_at):
        reason = f"{job_text} succeeded before this release was committed"
        return GateResult(name, False, reason, next_command=rerun_command, kind=gate.kind)
    return GateResult(name, True, f"succeeded{_format_age(facts.now, run.finished_at)}", kind=gate.kind)


def _require_running_release(
    name: str, gate: PromotionGate, source: DeliveryEnvironment, state: EnvironmentState
) -> GateResult | None:
    """Return a closed gate unless the source runs the release: its health proves nothing about other releases."""
    app = source.application
    if state.runs_release is None:
        reason, advice = f"{app} runs {state.revision[:7] or 'nothing'}, which is not in this clone", "git pull"
    elif state.ran_release_before:
        reason, advice = (
            f"{app} runs a different release now",
            f"argosy promote plan --to ENV, for the release in {source.name}",
        )
    elif not state.runs_release and state.is_unpushed:
        reason, advice = f"{app} does not run this release: not pushed yet", f"git push; then: argosy app sync {app}"
    elif not state.runs_release:
        reason, advice = f"{app} does not run this release yet", f"argosy app sync {app}"
    else:
        return None
    return GateResult(name, False, reason, next_command=advice, kind=gate.kind)


def _evaluate_healthy_or_soak(
    name: str, gate: PromotionGate, source: DeliveryEnvironment, state: EnvironmentState, facts: GateFacts
) -> GateResult:
    app, required_seconds = source.application, parse_duration(gate.value)

    def closed(reason: str, advice: str = "") -> GateResult:
        return GateResult(name, False, reason, next_command=advice, kind=gate.kind)

    if state.sync != "Synced":
        return closed(f"{app} is {state.sync}: the release is not fully deployed", f"argosy app diff {app}")
    if state.health != "Healthy":
        return closed(f"{app} is {state.health}", f"argosy app get {app}")
    started_at = state.health_since
    if gate.kind == "soak":
        if state.sync_failure:
            return closed(f"{app}: {state.sync_failure}", f"argosy app get {app}")
        times = [time for time in (state.health_since, state.deployed_at) if time]
        started_at = max(times) if state.deployed_at else None
    if started_at is None:
        return (
            closed(f"{app} is Healthy, but reports no start time")
            if required_seconds
            else _build_healthy_result(name, gate, app, "")
        )
    elapsed_seconds = (facts.now - started_at).total_seconds()
    if elapsed_seconds < -MAX_CLOCK_SKEW_SECONDS:
        return closed(
            f"this machine's clock is {format_duration(-elapsed_seconds)} behind the cluster's", "set the clock"
        )
    if elapsed_seconds < required_seconds:
        remaining_text = f"{format_duration(math.ceil(required_seconds - max(elapsed_seconds, 0)))} to go"
        return closed(f"{app} is Healthy for {format_duration(max(elapsed_seconds, 0))}, {remaining_text}", WAIT_ADVICE)
    return _build_healthy_result(name, gate, app, f" for {format_duration(elapsed_seconds)}")


def _build_healthy_result(name: str, gate: PromotionGate, app: str, duration_text: str) -> GateResult:
    return GateResult(name, True, f"{app} is Healthy{duration_text}", kind=gate.kind)


def parse_duration(text: str) -> float:
    return float(sum(int(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text)))


def format_duration(seconds: float) -> str:
    """Format with one unit: 45s, 12m, 3h, 9d."""
    for unit, size in reversed(_UNIT_SECONDS.items()):
        if seconds >= size * (1 if unit in "smd" else 2) or unit == "s":
            return f"{int(seconds // size)}{unit}"
    raise AssertionError


def _format_age(now: datetime, then: datetime) -> str:
    return f" {format_duration(max(0.0, (now - then).total_seconds()))} ago"
