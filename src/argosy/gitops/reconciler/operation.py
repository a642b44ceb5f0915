"""Runs the operation of an Application, one step at a time.

In: an Application with an operation, the settings. Out: the operation state to write, and when to continue.
Never: takes a step on a state that is not written yet: each decision is written before the next step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from argosy.errors import Forbidden, UserError
from argosy.gitops.application import Application, OperationRequest, OperationState, Progress
from argosy.gitops.application.project import Project
from argosy.gitops.application.step_results import Comparison, Task
from argosy.gitops.diff.diff_options import rules_for
from argosy.gitops.diff.respect_ignored import respect_questions, respecting
from argosy.gitops.policy.impersonation import NoServiceAccount
from argosy.gitops.policy.projects import forbidden_sources, permits
from argosy.gitops.policy.prune_policy import is_mass
from argosy.gitops.policy.sync_windows import verdict
from argosy.gitops.reconciler.app_state import Look, Looker, removed_by
from argosy.gitops.reconciler.desired_state import Assembled, Assembler, Wanted, load_error_text
from argosy.gitops.reconciler.impersonation import impersonate
from argosy.gitops.reconciler.permissions import why_not_delete
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.gitops.status.wire_format import mapping
from argosy.gitops.sync.advance import TOO_LATE, advance, is_too_late
from argosy.gitops.sync.auto_sync import are_same
from argosy.gitops.sync.notebook_gates import JOB, Hold, hold
from argosy.gitops.sync.options import SyncOptions
from argosy.gitops.sync.retry import is_resting, next_attempt, rest, settle
from argosy.gitops.sync.sync_plan import Occasion, hook_tasks, plan
from argosy.gitops.sync.wave_step import AppliedMessages
from argosy.kube.client import Catalog
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import CLOCK_SKEW, written

BLOCKED: Final = "Sync operation blocked by sync window"
LOOK_AGAIN: Final = 30.0  # argo: seconds until the next step at the latest
WAITING: Final = "; waiting for a service account: "  # separates the earlier message from the reason


@dataclass(frozen=True, slots=True)
class Step:
    state: OperationState
    wait: float | None = None  # seconds; None: until something changes


def begun(request: OperationRequest, now: datetime, last: OperationState | None) -> OperationState:
    """Build the state of an operation that was just requested.

    The start time identifies the operation, so a second operation within the same second gets microseconds.
    """
    started = written(now)
    if last is not None and last.started[: len(started) - 1] == started[:-1]:
        started = written(now, "microseconds")
    return OperationState(request=request, progress=Progress.RUNNING, started=started)


class Operator:
    def __init__(
        self,
        cluster: Doorway,
        assembler: Assembler,
        looker: Looker,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster, self.assembler, self.looker = cluster, assembler, looker
        self.now, self._monotonic = now, monotonic
        # By Application: an operation that starts in the future because the clock was set back, and when that was seen.
        self._starts_ahead: dict[ResourceKey, tuple[str, float]] = {}
        # By Application: its operation and attempt, and the messages of what it applied. A pass whose state could not
        # be written is repeated, and must report the work of the first try.
        self._applied: dict[ResourceKey, tuple[tuple[str, int], AppliedMessages]] = {}

    async def begin(
        self,
        app: Application,
        request: OperationRequest,
        project: Project,
        rules: Rules,
        kinds: Catalog,
        waited: float = 0.0,
    ) -> Step:
        """Build the state of a requested operation with its revision; `waited` is the age of the request in seconds."""
        state = begun(request, self.now(), app.state)
        try:
            wanted = self._wanted(app, state, project, waited)
            assembled = await self.assembler.assemble(app, project, wanted, rules, kinds)
        except UserError:
            return Step(state, 0.0)  # the first step will report the error
        return Step(self._for_revision(app, state, assembled), 0.0)

    async def step(
        self, app: Application, state: OperationState, project: Project, rules: Rules, kinds: Catalog
    ) -> Step:
        """Advance the operation by one call of the sync engine."""
        state = replace(state, message=state.message.partition(WAITING)[0])
        if state.progress is Progress.RUNNING and self._has_timed_out_since_clock_jump(app, state, rules.sync.timeout):
            return Step(replace(state, progress=Progress.TERMINATING, message=TOO_LATE), 0.0)
        is_late = is_too_late(state, rules.sync, self.now())
        if is_resting(state) and not is_late:
            wait = rest(state, self.now())
            return Step(state, min(wait, LOOK_AGAIN)) if wait > 0 else Step(next_attempt(state), 0.0)
        if state.progress is Progress.RUNNING and not is_late and (blocked := self._blocked(app, state, project)):
            return Step(replace(state, message=blocked), LOOK_AGAIN)
        try:
            return await self._advanced(app, state, project, rules, kinds)
        except NoServiceAccount as error:
            if _has_hooks_to_remove(state):  # without an account the hooks cannot be removed, and keep running
                return Step(replace(state, message=f"{state.message}{WAITING}{error}"), LOOK_AGAIN)
            return self._ended(state, replace(state, progress=Progress.ERROR, message=str(error)))
        except UserError as error:
            return self._ended(state, replace(state, progress=Progress.ERROR, message=str(error)))

    def _has_timed_out_since_clock_jump(self, app: Application, state: OperationState, timeout: float) -> bool:
        """True if a sync with a start in the future has used up its timeout since the clock was set back."""
        if not timeout or not state.started or datetime.fromisoformat(state.started) <= self.now() + CLOCK_SKEW:
            self._starts_ahead.pop(app.key, None)
            return False
        known = self._starts_ahead.get(app.key)
        if known is None or known[0] != state.started:
            known = self._starts_ahead[app.key] = state.started, self._monotonic()
        return self._monotonic() - known[1] > timeout

    def _blocked(self, app: Application, state: OperationState, project: Project) -> str:
        started = datetime.fromisoformat(state.started) if state.started else None
        found = verdict(project.windows, app, self.now(), is_manual=not state.request.is_automated, started=started)
        return "" if found.is_allowed else f"{BLOCKED}: {found.reason}"

    async def _advanced(
        self, app: Application, state: OperationState, project: Project, rules: Rules, kinds: Catalog
    ) -> Step:
        wanted = self._wanted(app, state, project)
        try:
            assembled = await self.assembler.assemble(app, project, wanted, rules, kinds)
        except UserError as error:
            raise UserError(spelled([Condition(ConditionType.COMPARISON_ERROR, load_error_text(error))])) from error
        if not state.has_result:
            return Step(self._for_revision(app, state, assembled), 0.0)
        look = await self.looker.look(app, project, assembled, rules, kinds)
        if not look.is_whole:
            said = spelled([each for each in look.conditions if each.type.is_error]) or "the comparison failed"
            return self._ended(state, replace(state, progress=Progress.ERROR, message=said))
        return await self._synced(app, state, project, rules, kinds, look)

    @staticmethod
    def _for_revision(app: Application, state: OperationState, assembled: Assembled) -> OperationState:
        """Pin the operation to these revisions, whatever the branch does. Written before anything is applied."""
        # A rollback may have several sources although the Application has one by now.
        many = app.has_many_sources or len(assembled.revisions) > 1
        return replace(
            state,
            has_result=True,
            revision="" if many else assembled.revisions[0] if assembled.revisions else "",
            revisions=assembled.revisions if many else (),
            sources=tuple(each.wire for each in assembled.sources),
            namespace_metadata=mapping(mapping(app.wire.get("spec")).get("syncPolicy")).get("managedNamespaceMetadata"),
        )

    def _wanted(self, app: Application, state: OperationState, project: Project, waited: float = 0.0) -> Wanted:
        asked = state.request.sync
        if asked.manifests:  # argo: accepts them; argosy delivers only manifests that can be found in Git
            raise UserError("operation.sync.manifests: what is delivered must be in Git; push it, then sync")
        is_own = are_same([each.wire for each in asked.sources], [each.wire for each in app.sources])
        # the Application's own sources keep explicit nulls
        sources = app.sources if is_own or not asked.sources else asked.sources
        if forbidden := forbidden_sources(project, sources):
            raise UserError(spelled(Condition(ConditionType.INVALID_SPEC_ERROR, each) for each in forbidden))
        fixed = (state.revisions or (state.revision,)) if state.has_result else (asked.revisions or (asked.revision,))
        refs = tuple((fixed[place] if place < len(fixed) else "") or source.ref for place, source in enumerate(sources))
        return Wanted(sources, refs, waited)

    async def _synced(
        self, app: Application, state: OperationState, project: Project, rules: Rules, kinds: Catalog, look: Look
    ) -> Step:
        request = state.request.sync
        options = SyncOptions.of(request.options)  # argo: the requester copies the options of the Application
        comparison = _as_it_lives(look)
        if options.is_on("RespectIgnoreDifferences"):
            comparison = await respected(app, comparison, rules)
        occasion = Occasion(app, state.revision or " ".join(state.revisions), state.started, state.retries)
        live = {**look.live, **self._cached(app, comparison, occasion)}
        tasks = plan(comparison, request, occasion, options, live)
        prunes = sum(1 for pair in comparison.pairs if pair.desired is None)

        def is_permitted(key: ResourceKey, is_namespaced: bool) -> str:
            return permits(project, key, is_namespaced=is_namespaced, destination=app.destination)

        cluster, holds = impersonate(self.cluster, app, project, rules), await self._holds(app, tasks, kinds)
        try:
            found = await advance(
                state,
                tasks,
                app,
                options,
                cluster=cluster,
                assess_all=rules.assess_all,
                settings=rules.sync,
                now=self.now,
                may_delete=lambda manifest: why_not_delete(manifest, app, project, rules, kinds, options),
                permitted=is_permitted,
                is_mass=(
                    rules.asks_before_mass_prune
                    and state.request.is_automated
                    and is_mass(prunes, len(comparison.pairs))
                ),
                shared=look.shared,
                holds=holds,
                applied_messages=self._remember(app, state),
            )
        except Forbidden as error:
            if cluster is self.cluster:
                raise
            # The account may not even read the objects that it must change. A retry would fail too.
            return self._ended(state, replace(state, progress=Progress.FAILED, message=str(error)), may_retry=False)
        if found.state.progress.is_over:
            return self._ended(state, found.state)
        return Step(found.state, found.wait if found.wait is not None else LOOK_AGAIN)

    def _remember(self, app: Application, state: OperationState) -> AppliedMessages:
        """Return the messages of this attempt so far; a new attempt starts with none."""
        attempt = state.started, state.retries
        known = self._applied.get(app.key)
        if known is None or known[0] != attempt:
            known = self._applied[app.key] = attempt, {}
        return known[1]

    def forget(self, app: ResourceKey) -> None:
        self._applied.pop(app, None)
        self._starts_ahead.pop(app, None)

    def _ended(self, before: OperationState, after: OperationState, *, may_retry: bool = True) -> Step:
        """Finish the operation, or schedule the next attempt."""
        finished = after.finished or written(self.now())
        settled = settle(before, replace(after, finished=finished), self.now(), may_retry=may_retry)
        return Step(settled, rest(settled, self.now()) if is_resting(settled) else None)

    async def _holds(self, app: Application, tasks: Sequence[Task], kinds: Catalog) -> Callable[[int], Hold | None]:
        """Return a function that decides if notebooks hold a wave, from their newest state."""
        if JOB not in kinds:
            return lambda wave: None
        own = {task.key for task in tasks if task.key.group_kind == JOB and task.desired is not None}
        is_known = self.looker.knows(JOB)
        listed = () if is_known else (await self.cluster.list(JOB)).items

        def found(wave: int) -> Hold | None:
            # The cache counts even if the kind is not fully cached: it may have newer objects than the list.
            known = {key_of(each): each for each in (*listed, *self.looker.cache.list(JOB))}
            keys = own | set(known) | (self.looker.cluster.wrote(JOB) if is_known else set())
            newest = (self.looker.cluster.newest(key, known.get(key)) for key in keys)
            return hold(wave, [each for each in newest if each is not None], app, own)

        return found

    def _cached(self, app: Application, comparison: Comparison, occasion: Occasion) -> dict[ResourceKey, Manifest]:
        """Return the live hooks of this operation and the destination namespace, which are in no pair."""
        keys = [ResourceKey("", "Namespace", "", app.destination.namespace)]
        keys += [task.key for task in hook_tasks(comparison.hooks, occasion, {})]
        newest = ((key, self.looker.cluster.newest(key, self.looker.cache.get(key))) for key in keys)
        return {key: found for key, found in newest if found is not None}


def _has_hooks_to_remove(state: OperationState) -> bool:
    """True if hooks of the operation run, or if they may run because it is being terminated."""
    has_running_hook = any(result.hook and result.progress is Progress.RUNNING for result in state.results)
    return state.progress is Progress.TERMINATING or has_running_hook


def _as_it_lives(look: Look) -> Comparison:
    """Replace live manifests that were adapted for the comparison by the real ones, for the apply."""
    pairs = [
        pair if look.live.get(pair.key, pair.live) is pair.live else replace(pair, live=look.live[pair.key])
        for pair in look.comparison.pairs
    ]
    return replace(look.comparison, pairs=pairs)


async def respected(app: Application, comparison: Comparison, rules: Rules) -> Comparison:
    """argo: RespectIgnoreDifferences: fields that are not compared keep their live values when they are applied."""
    compare_rules = rules_for(app, rules.compare)
    asked = [
        each
        for pair in comparison.pairs
        if pair.desired is not None
        for each in respect_questions(pair.desired, pair.live, compare_rules)
    ]
    removed = await removed_by(rules, compare_rules, asked)
    pairs = [
        replace(pair, desired=respecting(pair.desired, pair.live, compare_rules, removed=removed))
        if pair.desired is not None and pair.live is not None
        else pair
        for pair in comparison.pairs
    ]
    return replace(comparison, pairs=pairs)


def spelled(conditions: Iterable[Condition]) -> str:
    """argo: format the conditions that stop an operation as its message."""
    return ";".join(f"{each.type}: {each.message}" for each in conditions)
