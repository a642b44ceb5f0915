"""Builds the environments board: per environment its release, the pending promotion and its gates.

In: a PromotionSession. Out: EnvironmentBoard, PlanView. Never: writes; reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from argosy.features.promote.classified_manifest_fields import EnvironmentContents, FieldKind, Release
from argosy.features.promote.gates import GateResult
from argosy.features.promote.image_and_model_comparison import VersionDifference, compare_versions
from argosy.features.promote.plan import PromotionPlan
from argosy.features.promote.promotion_changes import describe_kept, get_field_name, mask_field_value, split_image
from argosy.features.promote.promotion_log_trailers import PromotionLogEntry
from argosy.features.promote.service import PromotionSession
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment
from argosy.kube.objects.timestamps_and_delays import format_timestamp

MAX_DIFFERENCES: Final = 5


@dataclass(frozen=True)
class GateView:
    name: str
    is_open: bool
    why: str
    who: str = ""
    next: str = ""
    kind: str = ""


@dataclass(frozen=True)
class MoveView:
    kind: str
    owner: str
    before: str
    after: str


@dataclass(frozen=True)
class PlanView:
    source: str
    target: str
    application: str
    release: str
    commit: str
    over: str
    is_back: bool
    is_open: bool
    moves: tuple[MoveView, ...]
    stays: tuple[tuple[str, str], ...]
    gates: tuple[GateView, ...]
    files: tuple[str, ...]
    afterwards: tuple[str, ...]
    notes: tuple[str, ...]
    commits: int

    @property
    def awaits_approval(self) -> bool:
        return any(gate.kind == "approval" and not gate.is_open for gate in self.gates)


@dataclass(frozen=True)
class EnvironmentStage:
    name: str
    after: str
    application: str
    namespace: str
    release: str = ""
    is_by_hand: bool = False
    models: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    runs: str = ""  # the deployed release, if it differs from the one in Git
    health: str = ""
    sync: str = ""
    since: str = ""
    holds: tuple[GateView, ...] = ()
    coming: PlanView | None = None  # None: nothing to promote from the previous environment
    step: str = ""  # the command that brings the cluster to the state in Git
    brief: str = ""  # the same step in a few words
    back: str = ""  # message about a rollback that Git does not have yet
    same: str = ""  # "image and model": kinds equal to the previous environment's; empty if none are
    differences: tuple[str, ...] = ()  # sentences about differences that a promotion does not carry over
    is_source_broken: bool = False  # the previous environment cannot be built, so the pending promotion is unknown
    problem: str = ""

    @property
    def id(self) -> str:
        return f"e-{self.name}"

    @property
    def gates(self) -> tuple[GateView, ...]:
        return self.coming.gates if self.coming else self.holds


@dataclass(frozen=True)
class HistoryEvent:
    time: str
    environment: str
    action: str
    release: str
    by: str
    known_by: str
    commit: str
    text: str


@dataclass(frozen=True)
class EnvironmentBoard:
    stages: tuple[EnvironmentStage, ...]
    is_chain: bool
    notes: tuple[str, ...]
    why: str  # why there is no data from the cluster
    told_by: str  # the file that defines the environments
    history: tuple[HistoryEvent, ...]


def build_board(session: PromotionSession, max_history_entries: int = 20) -> EnvironmentBoard:
    snapshot = session.snapshot
    environments = snapshot.pipeline.environments
    is_chain = all(item.after == before.name for before, item in pairwise(environments))
    return EnvironmentBoard(
        tuple(_build_stage(session, item) for item in environments),
        is_chain,
        tuple(item for item in (session.source_note, *session.notes) if item),
        session.cluster_state.unavailable_reason,
        snapshot.pipeline.defined_in,
        tuple(_build_history_event(item) for item in snapshot.log[:max_history_entries]),
    )


def _build_stage(session: PromotionSession, environment: DeliveryEnvironment) -> EnvironmentStage:
    name, after, application = environment.name, environment.after or "", environment.application
    if name in session.build_errors:
        problem = str(session.build_errors[name])
        return EnvironmentStage(name, after, application, environment.namespace, problem=problem)
    release, planner = session.snapshot.get_release(environment), session.planner
    state, deployed, next_step = (
        planner.get_state(environment),
        planner.get_deployed_release(environment),
        planner.get_next_step(environment),
    )
    contents = session.snapshot.get_environment(environment).contents
    plan = session.pending_plans.get(name)
    same, differences = ("", ()) if plan else _compare_with_source(session, environment)
    return EnvironmentStage(
        name,
        after,
        application,
        environment.namespace,
        str(release),
        release.is_by_hand,
        _list_versions(contents, FieldKind.MODEL),
        _list_versions(contents, FieldKind.IMAGE),
        "" if deployed is None or _is_same_release(deployed.release, release) else str(deployed),
        state.health if state else "",
        state.sync if state else "",
        format_timestamp(state.health_since) if state and state.health_since else "",
        tuple(map(build_gate_view, planner.list_holds(environment))),
        build_plan_view(plan) if plan else None,
        next_step.command if next_step else "",
        next_step.brief if next_step else "",
        state.rollback_note if state else "",
        same,
        differences,
        after in session.build_errors,
    )


def _compare_with_source(session: PromotionSession, environment: DeliveryEnvironment) -> tuple[str, tuple[str, ...]]:
    """For an environment without a pending promotion: list the kinds that equal the source, and the differences."""
    source = session.snapshot.pipeline.find_previous(environment)
    if source is None or source.name in session.build_errors:
        return "", ()
    shares_volumes = bool(source.namespace) and source.namespace == environment.namespace
    views = (session.snapshot.get_environment(item).contents for item in (source, environment))
    comparison = compare_versions(*views, shares_volumes=shares_volumes)
    plurals = {FieldKind.PARAMETER: "parameters"}
    sentences = [
        _describe_difference(item, source.name, environment.name) for item in comparison.differences[:MAX_DIFFERENCES]
    ]
    if omitted := len(comparison.differences) - len(sentences):
        sentences.append(f"{omitted} more differ.")
    return " and ".join(plurals.get(item, str(item)) for item in comparison.same), tuple(sentences)


def _describe_difference(difference: VersionDifference, source: str, target: str) -> str:
    owner = difference.address.owner
    if difference.is_unknown:
        explanation = f"each reads {difference.source} in its own namespace, so the files may differ"
        return f"The {difference.kind} of {owner} may differ: {explanation}."
    if difference.source is None or difference.target is None:
        present_in, missing_in = (source, target) if difference.target is None else (target, source)
        return f"The {difference.kind} of {owner} is in {present_in} only: {missing_in} does not have it."
    return (
        f"The {difference.kind} of {owner} differs: {difference.source} in {source}, {difference.target} in {target}."
    )


def _is_same_release(release: Release | None, other: Release) -> bool:
    return release is not None and release.commit == other.commit


def build_gate_view(result: GateResult) -> GateView:
    return GateView(result.gate, result.is_open, result.reason, result.opened_by, result.next_command, result.kind)


def build_plan_view(plan: PromotionPlan) -> PlanView:
    moves = tuple(
        MoveView(
            str(move.kind),
            f"{move.owner} {get_field_name(move.address)}" if move.kind == FieldKind.PARAMETER else move.owner,
            _format_value(mask_field_value(move.address, move.before)),
            _format_value(mask_field_value(move.address, move.after)),
        )
        for move in plan.changes.moves
    )
    return PlanView(
        plan.source.name,
        plan.target.name,
        plan.target.application,
        str(plan.release),
        plan.release.commit,
        str(plan.replaced),
        plan.is_rollback,
        plan.is_open,
        moves,
        tuple(dict(describe_kept(plan.changes.stays)).items()),
        tuple(map(build_gate_view, plan.gate_results)),
        tuple(sorted(plan.files)),
        plan.following_gates,
        plan.notes,
        plan.commit_count,
    )


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return shorten_address(value) if isinstance(value, str) and "/" in value else str(value)


def _list_versions(contents: EnvironmentContents, kind: FieldKind) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(shorten_address(str(value)) for value in contents.select_values(kind).values() if value)
    )[:4]


def shorten_address(value: str) -> str:
    """Return the last path segment of an address, with the digest shortened to 7 characters."""
    name, version = split_image(value.partition("://")[2] or value)
    if "@sha256:" in version:
        tag, _, digest = version.partition("@sha256:")
        version = f"{tag}@{digest[:7]}"
    return name.rpartition("/")[2] + version


def _build_history_event(entry: PromotionLogEntry) -> HistoryEvent:
    parts = [
        f"from {entry.source}" if entry.source and entry.action == "promote" else "",
        f"replaces {entry.replaced.name} of {entry.environment}" if entry.replaced else "",
        f"skipped {', '.join(entry.skipped)}" if entry.skipped else "",
        f"as {entry.role}" if entry.role else "",
        entry.reason,
    ]
    return HistoryEvent(
        format_timestamp(datetime.fromtimestamp(entry.unix_seconds, UTC)),
        entry.environment,
        str(entry.action),
        entry.release.name if entry.release else "",
        entry.actor.name,
        entry.actor.known_by,
        entry.commit,
        "; ".join(filter(None, parts)),
    )


def filter_visible_stages(full_board: EnvironmentBoard, visible_applications: Sequence[str]) -> EnvironmentBoard:
    """Keep only the environments whose Applications the caller may see."""
    stages = tuple(item for item in full_board.stages if item.application in visible_applications)
    names = {item.name for item in stages}
    history = tuple(item for item in full_board.history if item.environment in names)
    return EnvironmentBoard(stages, full_board.is_chain, full_board.notes, full_board.why, full_board.told_by, history)
