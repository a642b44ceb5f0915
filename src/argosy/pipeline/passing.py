"""A pass: one application through all rooms, from its source to its status.

In: an application, the rules in force. Out: what is to be written, and when to look again. Never: knows how a room does
its work; writes the Application itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from argosy.compare import Memory
from argosy.live import CacheReader
from argosy.model import annotations as names
from argosy.model.application import IN_CLUSTER, Application, OperationRequest, OperationState, Progress
from argosy.model.errors import SourceError, Unreachable, UserError
from argosy.model.flow import SyncStatus
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import GroupKind, ResourceKey
from argosy.model.project import Project
from argosy.model.times import written
from argosy.pipeline.assembling import Assembler, Wanted
from argosy.pipeline.doorway import Doorway
from argosy.pipeline.looking import Look, Looker
from argosy.pipeline.operating import NOT_LOADED, Operator, begun, spelled
from argosy.pipeline.permitting import why_not_delete
from argosy.pipeline.rendering import Crew, Renders
from argosy.pipeline.rules import Rules
from argosy.pipeline.standing import invalid, looked_for, standing, unknown
from argosy.policy.windows import verdict
from argosy.report import events
from argosy.report.conditions import Condition, ConditionType, conditions_wire
from argosy.report.history import with_deployment
from argosy.report.holds import read_hold, told
from argosy.report.operations import request_wire
from argosy.report.status import RECONCILED, Report, changes, is_fresh, is_outdated, status
from argosy.report.summary import summary
from argosy.report.wire import mapping
from argosy.sync.automatic import Later, Refusal, Start, Target, decide
from argosy.sync.deleting import Deleted, awaits_hooks, delete_further, finalizers_for, is_ours

HARD: Final = "hard"
CLOSED: Final = 30.0  # seconds until a window that is closed is looked at again
PATIENCE: Final = 180.0  # argo: seconds for which a host that gives no answer is not spoken of
AWAY: Final = 15.0  # seconds until it is asked again


@dataclass(frozen=True, slots=True)
class Passed:
    """What came of a pass: a merge patch for the Application, Events, and seconds until the next look."""

    patch: dict[str, Any] | None = None
    events: Sequence[Manifest] = ()
    wait: float | None = None
    rest: Rest | None = None  # where nothing is left to do once the patch is written


@dataclass(frozen=True, slots=True)
class _Operation:
    """Where an operation stands after this pass."""

    state: OperationState | None
    wait: float | None = None
    asked: OperationRequest | None = None  # that begins by itself
    is_over: bool = False
    events: tuple[Manifest, ...] = ()
    conditions: tuple[Condition, ...] = field(default_factory=tuple)
    is_decided: bool = True  # whether it was found out if a sync begins by itself

    def changes_nothing(self, app: Application) -> bool:
        """Whether it is as it was read, and waits for nothing: the same look would find it the same again."""
        return self.state is app.state and not self.is_over and (self.wait, self.asked, self.events) == (None, None, ())


@dataclass(frozen=True, slots=True)
class Rest:
    """Of which nothing comes. As long as these three are the same, nothing will."""

    app: Application
    look: Look
    rules: Rules

    def is_of(self, app: Application, look: Look, rules: Rules) -> bool:
        return self.app.wire is app.wire and self.look is look and self.rules is rules


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
        self._rests: dict[ResourceKey, Rest] = {}
        self._settling: dict[ResourceKey, Rest] = {}  # not written yet
        self._summaries: dict[ResourceKey, tuple[Any, Mapping[str, str], dict[str, Any]]] = {}
        self._away: dict[ResourceKey, datetime] = {}  # since when hosts of its sources give no answer

    def stir(self, app: ResourceKey) -> None:
        """Something below what it manages has changed: what it is made of may be told otherwise."""
        self._rests.pop(app, None)
        self._settling.pop(app, None)
        self._summaries.pop(app, None)

    def settle(self, app: Application, rest: Rest) -> None:
        """What a pass found is written: this is the Application with it. Unless it was stirred meanwhile."""
        if self._settling.pop(app.key, None) is rest:
            self._rests[app.key] = replace(rest, app=app)

    def is_at_rest(self, app: Manifest) -> bool:
        """Whether this version of an Application was settled; then it alone is no reason to look again."""
        rest = self._rests.get(key_of(app))
        version = app["metadata"].get("resourceVersion")
        return rest is not None and bool(version) and rest.app.wire["metadata"].get("resourceVersion") == version

    def forget(self, app: ResourceKey) -> None:
        self.assembler.forget(app)
        self.looker.forget(app)
        self.stir(app)
        self._away.pop(app, None)

    async def reconcile(
        self, app: Application, rules: Rules, asked: float | None = None, *, is_hard: bool = False
    ) -> Passed:
        """One pass, safe to repeat: everything is read anew, and each step leads nearer to Synced.

        `asked` is the moment, by the monotonic clock, since which somebody has waited for a refresh or an operation:
        many that were asked for at once share a host's answer.
        """
        waited = 0.0 if asked is None else max(0.0, time.monotonic() - asked)
        project = rules.projects.get(app.project)
        broken = invalid(app, project, rules)
        app = rules.clusters.placed(app)
        if app.deleted:
            return await self._delete(app, project, rules)
        refresh = app.annotations.get(names.REFRESH)
        if broken or project is None:
            return self._reported(
                app, rules, unknown(app, broken, is_invalid=True), self._refused(app, broken), refresh
            )
        try:
            look = await self._look(app, project, rules, HARD if is_hard else refresh, waited)
        except Unreachable:
            return Passed(wait=AWAY)
        rest = self._rests.get(app.key)
        is_told = is_fresh(app.status.get(RECONCILED), written(self.now()))
        if is_told and rest is not None and rest.is_of(app, look, rules):
            return Passed()
        self._rests.pop(app.key, None)
        operation = await self._operate(app, project, rules, look, waited)
        passed = self._reported(app, rules, look, operation, refresh)
        if operation.changes_nothing(app) and "finalizers" not in (passed.patch or {}).get("metadata", {}):
            found = Rest(app, look, rules)
            (self._rests if passed.patch is None else self._settling)[app.key] = found
            return replace(passed, rest=found)
        return passed

    async def _look(
        self, app: Application, project: Project, rules: Rules, refresh: str | None, waited: float = 0.0
    ) -> Look:
        max_age = waited if refresh is not None else rules.reconciliation
        wanted = Wanted(app.sources, tuple(source.ref for source in app.sources), max_age, refresh == HARD)
        kinds = await self.cluster.kinds()
        try:
            assembled = await self.assembler.assemble(app, project, wanted, rules, kinds)
        except UserError as error:
            if isinstance(error, Unreachable) and refresh is None and self._may_pass(app):
                raise
            said = f"{NOT_LOADED}: {error}"
            revisions = (error.last_good,) if isinstance(error, SourceError) and error.last_good else ()
            look = unknown(app, [Condition(ConditionType.COMPARISON_ERROR, said)], revisions)
            # argo: how what lives fares is told, also where nobody knows what Git asks for
            return replace(look, health=await self.looker.health_of_tracked(app, rules) or look.health)
        self._away.pop(app.key, None)
        try:
            return await self.looker.look(app, project, assembled, rules, kinds, afresh=refresh is not None)
        except UserError as error:
            said = f"Failed to load live state: {error}"
            return unknown(app, [Condition(ConditionType.COMPARISON_ERROR, said)], assembled.revisions)

    def _may_pass(self, app: Application) -> bool:
        """argo: what is known of an application is not given up because its host is away for a moment."""
        known = mapping(app.status.get("sync")).get("status") in (SyncStatus.SYNCED, SyncStatus.OUT_OF_SYNC)
        if not known or app.operation is not None or app.deleted or is_outdated(app):
            return False
        since = self._away.setdefault(app.key, self.now())
        return (self.now() - since).total_seconds() < PATIENCE

    # -- deletion --------------------------------------------------------------------------------------------------

    async def _delete(self, app: Application, project: Project | None, rules: Rules) -> Passed:
        """argo: what belongs to it goes first. Without a project or a cluster that is known, nothing can be done."""
        if project is None or (app.destination.server or app.destination.name) not in IN_CLUSTER:
            return Passed({"metadata": {"finalizers": [each for each in app.finalizers if not is_ours(each)]}})
        look = await self._look(app, project, rules, None)
        kinds = await self.cluster.kinds()

        def may_delete(manifest: Manifest) -> str:
            return why_not_delete(manifest, app, project, rules, kinds, None)

        if look.resources is None and awaits_hooks(app):  # argo: no hook is passed over because its source is away
            said = "; ".join(each.message for each in look.conditions)
            found = Deleted(app.finalizers, wait=AWAY, error=f"hooks of its deletion are not known: {said}")
        else:
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
        is_tried_again = not found.error and found.finalizers == app.finalizers  # what went wrong is still the news
        settled = set() if is_tried_again else {ConditionType.DELETION_ERROR}
        after = conditions_wire(before, error, settled, written(self.now()))
        if after != before:
            patch["status"] = {"conditions": after}
        is_done = any(map(is_ours, app.finalizers)) and not any(map(is_ours, found.finalizers))
        return Passed(patch or None, (events.gone(app),) if is_done else (), wait=found.wait)

    # -- operations ------------------------------------------------------------------------------------------------

    async def _operate(
        self, app: Application, project: Project, rules: Rules, look: Look, waited: float
    ) -> _Operation:
        state = app.state
        if app.operation is not None and (state is None or state.progress.is_over):
            return await self._begin(app, app.operation, project, rules, waited)
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
        state = replace(state, progress=Progress.ERROR, message=spelled(broken), finished=written(now))
        return _Operation(state, is_over=True, events=(events.completed(app, state),))

    async def _begin(
        self, app: Application, request: OperationRequest, project: Project, rules: Rules, waited: float = 0.0
    ) -> _Operation:
        step = await self.operator.begin(app, request, project, rules, await self.cluster.kinds(), waited)
        return _Operation(step.state, step.wait, events=(events.started(app, step.state),))

    async def _automatic(self, app: Application, project: Project, rules: Rules, look: Look) -> _Operation:
        """Whether a sync begins by itself."""
        has_errors = any(each.type is ConditionType.COMPARISON_ERROR for each in look.conditions)
        if not look.is_whole or has_errors:
            return _Operation(app.state)
        target, hold = self._target(app, look), read_hold(app.annotations)
        decision = decide(app, standing(app, look), target, self.now(), rules.heal)
        if decision is not None and not verdict(project.windows, app, self.now(), is_manual=False).is_allowed:
            # argo: while a window is in the way nothing is found out, and what was told before stays
            wait = None if isinstance(decision, Refusal) else CLOSED
            return _Operation(app.state, wait, is_decided=False)
        match decision:
            case Start() | Later() if hold is not None:
                said = f"Skipping sync attempt to [{' '.join(target.revisions)}]: {told(hold, app.name)}"
                return _Operation(app.state, conditions=(Condition(ConditionType.SYNC_ERROR, said),))
            case Start(request):
                return replace(await self._begin(app, request, project, rules), asked=request)
            case Later(seconds):
                return _Operation(app.state, seconds)
            case Refusal(message):
                return _Operation(app.state, conditions=(Condition(ConditionType.SYNC_ERROR, message),))
        return _Operation(app.state)

    def _target(self, app: Application, look: Look) -> Target:
        """argo: with manifest-generate-paths it may be known that a new revision holds nothing new."""
        revisions, state = look.assembled.revisions, app.state
        if state is None or not state.has_result or not app.annotations.get(names.MANIFEST_GENERATE_PATHS):
            return Target(revisions)
        synced = state.revisions or (state.revision,)
        return Target(revisions, may_hold_changes=not self.assembler.is_carried(app, synced))

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
            # argo: taken away only if nobody has asked again meanwhile; here the version of what was read tells that
            answered = [each for each in (names.REFRESH, names.REFRESH_TIMESTAMP) if each in app.annotations]
            patch["metadata"] = {"annotations": dict.fromkeys(answered)}
        if look.is_whole and (kept := finalizers_for(app, look.comparison.hooks)) != app.finalizers:
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
            status=standing(app, look).status,
            revisions=look.assembled.revisions,
            sources=look.assembled.sources,
            tools=look.assembled.tools,
            resources=look.resources,
            shows_health=rules.shows_health,
            health=look.health,
            conditions=(*look.conditions, *operation.conditions, *settings),
            looked_for=looked_for(look, is_decided=operation.is_decided),
            is_compared=not look.is_invalid,
            is_lost=look.resources is None and not look.is_invalid,
            history=history,
            summary=None if look.resources is None else self._summary(app, look),
            controller_namespace=rules.control_namespace,
        )

    def _summary(self, app: Application, look: Look) -> dict[str, Any]:
        """Of the same things it is the same; whoever changes something below them stirs it."""
        known = self._summaries.get(app.key)
        if known is not None and known[0] is look.live and known[1] == app.annotations:
            return known[2]
        found = summary(self.looker.whole(look), app.annotations)
        self._summaries[app.key] = look.live, app.annotations, found
        return found
