"""The corridor: one application, from its source to its status.

In: an application, the rules in force. Out: what is to be written, and when to look again. Never: knows how a room does
its work; writes the Application itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from argosy.compare import Memory
from argosy.live import CacheReader
from argosy.model import annotations as names
from argosy.model.application import IN_CLUSTER, Application, OperationRequest, OperationState, Progress
from argosy.model.application.spelling import missing_field
from argosy.model.errors import SourceError, UserError
from argosy.model.flow import Assessment, Comparison, Health, SyncStatus
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.model.project import Project
from argosy.pipeline.assembling import Assembled, Assembler, Wanted
from argosy.pipeline.doorway import Doorway
from argosy.pipeline.looking import Look, Looker
from argosy.pipeline.operating import Operator, begun, why_not_delete, written
from argosy.pipeline.rendering import Crew, Renders
from argosy.pipeline.rules import Rules
from argosy.policy.projects import violations
from argosy.policy.windows import verdict
from argosy.report import events
from argosy.report.conditions import Condition, ConditionType, conditions_wire
from argosy.report.history import with_deployment
from argosy.report.holds import read_hold, told
from argosy.report.operations import request_wire
from argosy.report.status import RECONCILED, Report, changes, is_fresh, status
from argosy.report.summary import summary
from argosy.report.wire import mapping
from argosy.sync.automatic import Later, Refusal, Start, Target, decide
from argosy.sync.deleting import delete_further, finalizers_for, is_ours

HARD: Final = "hard"
LOOKED_FOR: Final = frozenset(ConditionType) - {ConditionType.DELETION_ERROR}
CLOSED: Final = 30.0  # seconds until a window that is closed is looked at again


@dataclass(frozen=True, slots=True)
class Passed:
    """What came of a pass: a merge patch for the Application, Events, and seconds until the next look."""

    patch: dict[str, Any] | None = None
    events: Sequence[Manifest] = ()
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class _Operation:
    """Where an operation stands after this pass."""

    state: OperationState | None
    wait: float | None = None
    asked: OperationRequest | None = None  # that begins by itself
    is_over: bool = False
    events: tuple[Manifest, ...] = ()
    conditions: tuple[Condition, ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Of which nothing came. As long as these three are the same, nothing will."""

    app: Application
    look: Look
    rules: Rules

    def is_of(self, app: Application, look: Look, rules: Rules) -> bool:
        return self.app is app and self.look is look and self.rules is rules


class Pipeline:
    """The rooms, and what they remember between passes."""

    def __init__(
        self,
        cluster: Doorway,
        cache: CacheReader,
        crew: Crew,
        *,
        now: Callable[[], datetime],
        knows: Callable[[GroupKind], bool] = lambda kind: True,
    ) -> None:
        self.cluster, self.now = cluster, now
        self.assembler = Assembler(Renders(crew))
        self.looker = Looker(cluster, cache, Memory(), knows)
        self.operator = Operator(cluster, self.assembler, self.looker, now)
        self._quiet: dict[ResourceKey, _Quiet] = {}

    def stir(self, app: ResourceKey) -> None:
        """Something below what it manages has changed: what it is made of may be told otherwise."""
        self._quiet.pop(app, None)

    def forget(self, app: ResourceKey) -> None:
        self.assembler.forget(app)
        self.looker.forget(app)
        self._quiet.pop(app, None)

    async def reconcile(self, app: Application, rules: Rules, asked: float | None = None) -> Passed:
        """One pass, safe to repeat: everything is read anew, and each step leads nearer to Synced.

        `asked` is the moment, by the monotonic clock, since which somebody has waited for a refresh: many that were
        asked for at once share a host's answer.
        """
        project = rules.projects.get(app.project)
        if app.deleted:
            return await self._delete(app, project, rules)
        refresh = app.annotations.get(names.REFRESH)
        if (broken := invalid(app, project, rules)) or project is None:
            return self._reported(app, rules, unknown(app, broken), self._refused(app, broken), refresh)
        look = await self._look(app, project, rules, refresh, asked)
        quiet = self._quiet.get(app.key)
        if quiet is not None and quiet.is_of(app, look, rules):
            if is_fresh(app.status.get(RECONCILED), written(self.now())):
                return Passed()
            del self._quiet[app.key]
        operation = await self._operate(app, project, rules, look)
        passed = self._reported(app, rules, look, operation, refresh)
        if passed == Passed():
            self._quiet[app.key] = _Quiet(app, look, rules)
        return passed

    async def _look(
        self, app: Application, project: Project, rules: Rules, refresh: str | None, asked: float | None = None
    ) -> Look:
        waited = 0.0 if asked is None else max(0.0, time.monotonic() - asked)
        max_age = waited if refresh is not None else rules.reconciliation
        wanted = Wanted(app.sources, tuple(source.ref for source in app.sources), max_age, refresh == HARD)
        try:
            kinds = await self.cluster.kinds()
            assembled = await self.assembler.assemble(app, project, wanted, rules, kinds)
            return await self.looker.look(app, project, assembled, rules, kinds)
        except UserError as error:
            said = f"Failed to load target state: {error}"
            revisions = (error.last_good,) if isinstance(error, SourceError) and error.last_good else ()
            return unknown(app, [Condition(ConditionType.COMPARISON_ERROR, said)], revisions)

    # -- deletion --------------------------------------------------------------------------------------------------

    async def _delete(self, app: Application, project: Project | None, rules: Rules) -> Passed:
        """argo: what belongs to it goes first. Without a project or a cluster that is known, nothing can be done."""
        if project is None or (app.destination.server or app.destination.name) not in IN_CLUSTER:
            return Passed({"metadata": {"finalizers": [each for each in app.finalizers if not is_ours(each)]}})
        look = await self._look(app, project, rules, None)
        kinds = await self.cluster.kinds()

        def may_delete(manifest: Manifest) -> str:
            return why_not_delete(manifest, app, project, rules, kinds, None)

        found = await delete_further(
            app,
            look.live or self.looker.tracked(app, rules),
            look.comparison.hooks,
            cluster=self.cluster,
            assess_all=rules.assess_all,
            may_delete=may_delete,
        )
        patch: dict[str, Any] = {}
        if found.finalizers != app.finalizers:
            patch["metadata"] = {"finalizers": list(found.finalizers)}
        error = [Condition(ConditionType.DELETION_ERROR, found.error)] if found.error else []
        before = app.status.get("conditions") or []
        after = conditions_wire(before, error, {ConditionType.DELETION_ERROR}, written(self.now()))
        if after != before:
            patch["status"] = {"conditions": after}
        is_done = any(map(is_ours, app.finalizers)) and not any(map(is_ours, found.finalizers))
        return Passed(patch or None, (events.gone(app),) if is_done else (), wait=found.wait)

    # -- operations ------------------------------------------------------------------------------------------------

    async def _operate(self, app: Application, project: Project, rules: Rules, look: Look) -> _Operation:
        state = app.state
        if app.operation is not None and (state is None or state.progress.is_over):
            return await self._begin(app, app.operation, project, rules)
        if app.operation is not None and state is not None:
            step = await self.operator.step(app, state, project, rules, await self.cluster.kinds())
            over = step.state.progress.is_over
            ended = (events.completed(app, step.state),) if over else ()
            return _Operation(step.state, 0.0 if over else step.wait, is_over=over, events=ended)
        return await self._automatic(app, project, rules, look)

    def _refused(self, app: Application, broken: Sequence[Condition]) -> _Operation:
        """argo: an operation of an application that is not valid ends before it begins."""
        if app.operation is None:
            return _Operation(app.state)
        now, state = self.now(), app.state
        if state is None or state.progress.is_over:
            state = begun(app.operation, now, state)
        said = "; ".join(f"{each.type}: {each.message}" for each in broken)
        state = replace(state, progress=Progress.ERROR, message=said, finished=written(now))
        return _Operation(state, is_over=True, events=(events.completed(app, state),))

    async def _begin(
        self, app: Application, request: OperationRequest, project: Project, rules: Rules
    ) -> _Operation:
        step = await self.operator.begin(app, request, project, rules, await self.cluster.kinds())
        return _Operation(step.state, step.wait, events=(events.started(app, step.state),))

    async def _automatic(self, app: Application, project: Project, rules: Rules, look: Look) -> _Operation:
        """Whether a sync begins by itself."""
        has_errors = any(each.type is ConditionType.COMPARISON_ERROR for each in look.conditions)
        if not look.is_whole or has_errors:
            return _Operation(app.state)
        target, hold = Target(look.assembled.revisions), read_hold(app.annotations)
        match decide(app, _standing(app, look), target, self.now()):
            case Start() | Later() if hold is not None:
                said = f"Skipping sync attempt to [{' '.join(target.revisions)}]: {told(hold, app.name)}"
                return _Operation(app.state, conditions=(Condition(ConditionType.SYNC_ERROR, said),))
            case Start(request):
                if verdict(project.windows, app, self.now(), is_manual=False).is_allowed:
                    return replace(await self._begin(app, request, project, rules), asked=request)
                return _Operation(app.state, CLOSED)
            case Later(seconds):
                return _Operation(app.state, seconds)
            case Refusal(message):
                return _Operation(app.state, conditions=(Condition(ConditionType.SYNC_ERROR, message),))
        return _Operation(app.state)

    # -- the report ------------------------------------------------------------------------------------------------

    def _reported(
        self, app: Application, rules: Rules, look: Look, operation: _Operation, refresh: str | None
    ) -> Passed:
        patch: dict[str, Any] = {}
        if (changed := changes(app.status, status(self._report(app, rules, look, operation)))) is not None:
            patch["status"] = changed
        if operation.asked is not None:
            patch["operation"] = request_wire(operation.asked)
        elif operation.is_over:
            patch["operation"] = None
        if refresh is not None:
            patch["metadata"] = {"annotations": {names.REFRESH: None}}
        if look.is_whole and (kept := finalizers_for(app, look.assembled.desired)) != app.finalizers:
            patch.setdefault("metadata", {})["finalizers"] = list(kept)
        return Passed(patch or None, operation.events, operation.wait)

    def _report(self, app: Application, rules: Rules, look: Look, operation: _Operation) -> Report:
        history = app.status.get("history") or []
        if operation.is_over and operation.state is not None:
            history = with_deployment(history, operation.state, app.history_limit)
        settings = (Condition(ConditionType.UNKNOWN_ERROR, text) for text in rules.faults)
        return Report(
            app=app,
            now=written(self.now()),
            state=operation.state,
            status=_standing(app, look).status,
            revisions=look.assembled.revisions,
            sources=look.assembled.sources,
            tools=look.assembled.tools,
            resources=look.resources,
            shows_health=rules.shows_health,
            health=look.health,
            conditions=(*look.conditions, *operation.conditions, *settings),
            looked_for=LOOKED_FOR,
            history=history,
            summary=summary(self.looker.whole(look), app.annotations),
            controller_namespace=rules.control_namespace,
        )


def invalid(app: Application, project: Project | None, rules: Rules) -> list[Condition]:
    """What is wrong with the Application itself."""
    said = violations(project, app, control_namespace=rules.control_namespace)
    if not app.sources:
        said.append("spec.source.repoURL and either spec.source.path or spec.source.chart are required")
    place = "spec.sources" if app.has_many_sources else "spec.source"
    said += [f"{place}: {text}" for source in app.sources if (text := missing_field(source))]
    server, name = app.destination.server, app.destination.name
    if server and name:
        said.append(f"application destination can't have both name and server defined: {name} {server}")
    elif (server or name) not in IN_CLUSTER:
        said.append(f"there are no clusters with this name or address: {server or name or 'none is given'}")
    return [Condition(ConditionType.INVALID_SPEC_ERROR, text) for text in said]


def _standing(app: Application, look: Look) -> Comparison:
    """argo: what the namespace is to carry is in no manifest; where that has changed, the application is OutOfSync."""
    asked = mapping(mapping(app.wire.get("spec")).get("syncPolicy")).get("managedNamespaceMetadata")
    state = app.state
    if asked is None or state is None or not state.has_result or not look.is_whole:
        return look.comparison
    if asked == (dict(state.namespace_metadata) if state.namespace_metadata is not None else None):
        return look.comparison
    return replace(look.comparison, status=SyncStatus.OUT_OF_SYNC)


def unknown(app: Application, conditions: Sequence[Condition], revisions: tuple[str, ...] = ()) -> Look:
    """argo: where something cannot be found out, all of it is Unknown; what is known of health stays."""
    before = app.status.get("health")
    word = before.get("status") if isinstance(before, dict) else ""
    health = Health(word) if word in set(Health) else Health.UNKNOWN
    nothing = Assembled(app.sources, revisions, ())
    comparison = replace(Comparison(), status=SyncStatus.UNKNOWN)
    return Look(nothing, comparison, {}, health=Assessment(health), conditions=tuple(conditions))
