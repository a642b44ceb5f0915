"""Builds the environments board: per environment its release, the pending promotion and its gates.

In: a PromotionSession. Out: EnvironmentBoard, PlanView. Never: writes; reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from argosy.features.promote.gates import Verdict
from argosy.features.promote.moves import name_of, parted, shown, told
from argosy.features.promote.plan import Plan
from argosy.features.promote.promotion_log import Entry
from argosy.features.promote.releases import Contents, Kind, Release
from argosy.features.promote.service import Session
from argosy.features.promote.version_comparison import VersionDifference, compare_versions
from argosy.gitops.delivery_file.values import Environment
from argosy.kube.objects.timestamps import written

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
    def needs_answer(self) -> bool:
        return any(each.kind == "approval" and not each.is_open for each in self.gates)


@dataclass(frozen=True)
class Stage:
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
class Happened:
    time: str
    environment: str
    action: str
    release: str
    by: str
    known_by: str
    commit: str
    text: str


@dataclass(frozen=True)
class Board:
    stages: tuple[Stage, ...]
    is_chain: bool
    notes: tuple[str, ...]
    why: str  # why there is no data from the cluster
    told_by: str  # the file that defines the environments
    history: tuple[Happened, ...]


def board(session: Session, most: int = 20) -> Board:
    survey = session.survey
    environments = survey.way.environments
    is_chain = all(each.after == before.name for before, each in pairwise(environments))
    return Board(
        tuple(_stage(session, each) for each in environments),
        is_chain,
        tuple(each for each in (session.source_note, *session.notes) if each),
        session.answers.why,
        survey.way.told_by,
        tuple(_happened(each) for each in survey.log[:most]),
    )


def _stage(session: Session, environment: Environment) -> Stage:
    name, after, application = environment.name, environment.after or "", environment.application
    if name in session.broken:
        problem = str(session.broken[name])
        return Stage(name, after, application, environment.namespace, problem=problem)
    release, planner = session.survey.release(environment), session.planner
    standing, running, step = planner.standing(environment), planner.running(environment), planner.step(environment)
    contents = session.survey.view(environment).contents
    plan = session.waiting.get(name)
    same, differences = ("", ()) if plan else _compared_with_source(session, environment)
    return Stage(
        name,
        after,
        application,
        environment.namespace,
        str(release),
        release.is_by_hand,
        _versions(contents, Kind.MODEL),
        _versions(contents, Kind.IMAGE),
        "" if running is None or _is_same(running.release, release) else str(running),
        standing.health if standing else "",
        standing.sync if standing else "",
        written(standing.since) if standing and standing.since else "",
        tuple(map(gate_view, planner.holds(environment))),
        plan_view(plan) if plan else None,
        step.command if step else "",
        step.brief if step else "",
        standing.back if standing else "",
        same,
        differences,
        after in session.broken,
    )


def _compared_with_source(session: Session, environment: Environment) -> tuple[str, tuple[str, ...]]:
    """For an environment without a pending promotion: list the kinds that equal the source, and the differences."""
    source = session.survey.way.before(environment)
    if source is None or source.name in session.broken:
        return "", ()
    shares_volumes = bool(source.namespace) and source.namespace == environment.namespace
    views = (session.survey.view(each).contents for each in (source, environment))
    found = compare_versions(*views, shares_volumes=shares_volumes)
    words = {Kind.PARAMETER: "parameters"}
    texts = [_difference(each, source.name, environment.name) for each in found.differences[:MAX_DIFFERENCES]]
    if more := len(found.differences) - len(texts):
        texts.append(f"{more} more differ.")
    return " and ".join(words.get(each, str(each)) for each in found.same), tuple(texts)


def _difference(found: VersionDifference, source: str, target: str) -> str:
    owner = found.at.owner
    if found.is_unknown:
        where = f"each reads {found.source} in its own namespace, so the files may differ"
        return f"The {found.kind} of {owner} may differ: {where}."
    if found.source is None or found.target is None:
        has, lacks = (source, target) if found.target is None else (target, source)
        return f"The {found.kind} of {owner} is in {has} only: {lacks} does not have it."
    return f"The {found.kind} of {owner} differs: {found.source} in {source}, {found.target} in {target}."


def _is_same(one: Release | None, other: Release) -> bool:
    return one is not None and one.commit == other.commit


def gate_view(verdict: Verdict) -> GateView:
    return GateView(verdict.gate, verdict.is_open, verdict.why, verdict.who, verdict.next, verdict.kind)


def plan_view(plan: Plan) -> PlanView:
    moves = tuple(
        MoveView(
            str(each.kind),
            f"{each.owner} {name_of(each.at)}" if each.kind == Kind.PARAMETER else each.owner,
            _text(shown(each.at, each.before)),
            _text(shown(each.at, each.after)),
        )
        for each in plan.moving.moves
    )
    return PlanView(
        plan.source.name,
        plan.target.name,
        plan.target.application,
        str(plan.release),
        plan.release.commit,
        str(plan.over),
        plan.is_back,
        plan.is_open,
        moves,
        tuple(dict(told(plan.moving.stays)).items()),
        tuple(map(gate_view, plan.verdicts)),
        tuple(sorted(plan.files)),
        plan.afterwards,
        plan.notes,
        plan.commits,
    )


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return brief(value) if isinstance(value, str) and "/" in value else str(value)


def _versions(contents: Contents, kind: Kind) -> tuple[str, ...]:
    return tuple(dict.fromkeys(brief(str(value)) for value in contents.of(kind).values() if value))[:4]


def brief(value: str) -> str:
    """Return the last path segment of an address, with the digest shortened to 7 characters."""
    name, version = parted(value.partition("://")[2] or value)
    if "@sha256:" in version:
        tag, _, digest = version.partition("@sha256:")
        version = f"{tag}@{digest[:7]}"
    return name.rpartition("/")[2] + version


def _happened(entry: Entry) -> Happened:
    parts = [
        f"from {entry.source}" if entry.source and entry.action == "promote" else "",
        f"replaces {entry.over.name} of {entry.environment}" if entry.over else "",
        f"skipped {', '.join(entry.skipped)}" if entry.skipped else "",
        f"as {entry.role}" if entry.role else "",
        entry.reason,
    ]
    return Happened(
        written(datetime.fromtimestamp(entry.seconds, UTC)),
        entry.environment,
        str(entry.action),
        entry.release.name if entry.release else "",
        entry.by.name,
        entry.by.known_by,
        entry.commit,
        "; ".join(filter(None, parts)),
    )


def visible(board_: Board, may: Sequence[str]) -> Board:
    """Keep only the environments whose Applications the caller may see."""
    stages = tuple(each for each in board_.stages if each.application in may)
    names = {each.name for each in stages}
    history = tuple(each for each in board_.history if each.environment in names)
    return Board(stages, board_.is_chain, board_.notes, board_.why, board_.told_by, history)
