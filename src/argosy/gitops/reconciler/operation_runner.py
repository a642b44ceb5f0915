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
from argosy.gitops.application import Application, OperationPhase, OperationRequest, OperationState
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.sources import are_sources_equal, remove_empty_options
from argosy.gitops.application.step_results import AppComparison, PlannedTask
from argosy.gitops.diff.diff_options import build_diff_options
from argosy.gitops.diff.respect_ignored import keep_ignored_live_values, list_respect_jq_questions
from argosy.gitops.policy.impersonation import NoServiceAccount
from argosy.gitops.policy.projects import find_permission_error, list_forbidden_sources
from argosy.gitops.policy.prune_policy import is_mass_prune
from argosy.gitops.policy.sync_windows import evaluate_sync_windows
from argosy.gitops.reconciler.app_memo import AppMemos, ComparisonMemo
from argosy.gitops.reconciler.app_state_comparison import AppStateComparer, evaluate_jq
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder, format_load_error
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.impersonation import impersonate_service_account
from argosy.gitops.reconciler.object_permission_and_deletion_check import find_deletion_refusal
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.gitops.sync.notebook_wave_holds import WaveHold, find_wave_hold
from argosy.gitops.sync.operation_state_machine import TIMEOUT_MESSAGE, advance_operation, has_timed_out
from argosy.gitops.sync.retry import (
    is_waiting_for_retry,
    schedule_retry_or_finish,
    seconds_until_retry,
    start_next_attempt,
)
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.sync_plan import OperationContext, plan_hook_tasks, plan_tasks
from argosy.gitops.sync.wave_step import AppliedMessages
from argosy.kube.client import Catalog
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import MAX_CLOCK_SKEW, format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NAMESPACE, NOTEBOOK_JOB

BLOCKED_BY_WINDOW: Final = "Sync operation blocked by sync window"
MAX_STEP_WAIT_SECONDS: Final = 30.0  # argo: seconds until the next step at the latest
WAITING_FOR_ACCOUNT: Final = "; waiting for a service account: "  # separates the earlier message from the reason


@dataclass(frozen=True, slots=True)
class OperationStep:
    state: OperationState
    wait: float | None = None  # seconds; None: until something changes


def start_operation(request: OperationRequest, now: datetime, last: OperationState | None) -> OperationState:
    """Build the state of an operation that was just requested.

    The start time identifies the operation, so a second operation within the same second gets microseconds.
    """
    started = format_timestamp(now)
    if last is not None and last.started[: len(started) - 1] == started[:-1]:
        started = format_timestamp(now, "microseconds")
    return OperationState(request=request, phase=OperationPhase.RUNNING, started=started)


class OperationRunner:
    def __init__(
        self,
        cluster: ReadYourWritesClient,
        desired_states: DesiredStateBuilder,
        comparer: AppStateComparer,
        now: Callable[[], datetime],
        memos: AppMemos,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster, self.desired_states, self.comparer = cluster, desired_states, comparer
        self.now, self._memos, self._monotonic = now, memos, monotonic

    async def begin(
        self,
        app: Application,
        request: OperationRequest,
        project: Project,
        settings: ReconcilerSettings,
        kinds: Catalog,
        waited: float = 0.0,
    ) -> OperationStep:
        """Build the state of a requested operation with its revision; `waited` is the age of the request in seconds."""
        state = start_operation(request, self.now(), app.state)
        try:
            desired_request = self._build_desired_request(app, state, project, waited)
            desired = await self.desired_states.build(app, project, desired_request, settings, kinds)
        except UserError:
            return OperationStep(state, 0.0)  # the first step will report the error
        return OperationStep(self._pin_revision(app, state, desired), 0.0)

    async def step(
        self,
        app: Application,
        state: OperationState,
        project: Project,
        settings: ReconcilerSettings,
        kinds: Catalog,
        compared: AppState,
    ) -> OperationStep:
        """Advance the operation by one call of the sync engine; `compared` is the comparison of this pass."""
        state = replace(state, message=state.message.partition(WAITING_FOR_ACCOUNT)[0])
        if state.phase is OperationPhase.RUNNING and self._has_timed_out_since_clock_jump(
            app, state, settings.sync.timeout_seconds
        ):
            return OperationStep(replace(state, phase=OperationPhase.TERMINATING, message=TIMEOUT_MESSAGE), 0.0)
        is_late = has_timed_out(state, settings.sync, self.now())
        if is_waiting_for_retry(state) and not is_late:
            wait = seconds_until_retry(state, self.now())
            return (
                OperationStep(state, min(wait, MAX_STEP_WAIT_SECONDS))
                if wait > 0
                else OperationStep(start_next_attempt(state), 0.0)
            )
        if (
            state.phase is OperationPhase.RUNNING
            and not is_late
            and (blocked := self._find_window_block(app, state, project))
        ):
            return OperationStep(replace(state, message=blocked), MAX_STEP_WAIT_SECONDS)
        try:
            return await self._advance(app, state, project, settings, kinds, compared)
        except NoServiceAccount as error:
            if _has_hooks_to_remove(state):  # without an account the hooks cannot be removed, and keep running
                return OperationStep(
                    replace(state, message=f"{state.message}{WAITING_FOR_ACCOUNT}{error}"), MAX_STEP_WAIT_SECONDS
                )
            return self._finish_or_retry(state, replace(state, phase=OperationPhase.ERROR, message=str(error)))
        except UserError as error:
            return self._finish_or_retry(state, replace(state, phase=OperationPhase.ERROR, message=str(error)))

    def _has_timed_out_since_clock_jump(self, app: Application, state: OperationState, timeout: float) -> bool:
        """True if a sync with a start in the future has used up its timeout since the clock was set back."""
        memo = self._memos[app.key].get_connection(self.cluster)
        if not timeout or not state.started or datetime.fromisoformat(state.started) <= self.now() + MAX_CLOCK_SKEW:
            memo.future_start = None
            return False
        seen = memo.future_start
        if seen is None or seen[0] != state.started:
            seen = memo.future_start = state.started, self._monotonic()
        return self._monotonic() - seen[1] > timeout

    def _find_window_block(self, app: Application, state: OperationState, project: Project) -> str:
        started = datetime.fromisoformat(state.started) if state.started else None
        decision = evaluate_sync_windows(
            project.windows, app, self.now(), is_manual=not state.request.is_automated, started=started
        )
        return "" if decision.is_allowed else f"{BLOCKED_BY_WINDOW}: {decision.reason}"

    async def _advance(
        self,
        app: Application,
        state: OperationState,
        project: Project,
        settings: ReconcilerSettings,
        kinds: Catalog,
        compared: AppState,
    ) -> OperationStep:
        request = self._build_desired_request(app, state, project)
        try:
            desired = await self.desired_states.build(app, project, request, settings, kinds)
        except UserError as error:
            raise UserError(
                format_conditions([AppCondition(ConditionType.COMPARISON_ERROR, format_load_error(error))])
            ) from error
        if not state.has_result:
            return OperationStep(self._pin_revision(app, state, desired), 0.0)
        app_state = compared
        # another revision, or other sources; or the newest revision is not verified, unlike this one
        if compared.desired.manifests is not desired.manifests or not compared.desired.is_verified:
            memo = self._memos[app.key].get_connection(self.cluster)
            memo.operation_comparison = memo.operation_comparison or ComparisonMemo()
            app_state = await self.comparer.compare_app_state(
                app, project, desired, settings, kinds, memo.operation_comparison
            )
        is_invalid = any(condition.type is ConditionType.INVALID_SPEC_ERROR for condition in app_state.conditions)
        if not app_state.is_complete or is_invalid:
            message = (
                format_conditions([condition for condition in app_state.conditions if condition.type.is_error])
                or "the comparison failed"
            )
            return self._finish_or_retry(state, replace(state, phase=OperationPhase.ERROR, message=message))
        return await self._sync(app, state, project, settings, kinds, app_state)

    @staticmethod
    def _pin_revision(app: Application, state: OperationState, desired: DesiredState) -> OperationState:
        """Pin the operation to these revisions, whatever the branch does. Written before anything is applied."""
        # A rollback may have several sources although the Application has one by now.
        has_many = app.has_many_sources or len(desired.revisions) > 1
        return replace(
            state,
            has_result=True,
            revision="" if has_many else desired.revisions[0] if desired.revisions else "",
            revisions=desired.revisions if has_many else (),
            sources=tuple(remove_empty_options(source.wire) for source in desired.sources),
            namespace_metadata=as_mapping(as_mapping(app.wire.get("spec")).get("syncPolicy")).get(
                "managedNamespaceMetadata"
            ),
        )

    def _build_desired_request(
        self, app: Application, state: OperationState, project: Project, waited: float = 0.0
    ) -> DesiredStateRequest:
        request = state.request.sync
        has_own_sources = are_sources_equal(
            [entry.wire for entry in request.sources], [entry.wire for entry in app.sources]
        )
        # the Application's own sources keep explicit nulls
        sources = app.sources if has_own_sources or not request.sources else request.sources
        if forbidden := list_forbidden_sources(project, sources):
            raise UserError(
                format_conditions(AppCondition(ConditionType.INVALID_SPEC_ERROR, entry) for entry in forbidden)
            )
        revisions = (
            (state.revisions or (state.revision,)) if state.has_result else (request.revisions or (request.revision,))
        )
        if request.manifests:  # argo: the result has only the revision that was requested, if any
            return DesiredStateRequest(sources, revisions, waited, local_manifests=request.manifests)
        refs = tuple(
            (revisions[index] if index < len(revisions) else "") or source.ref for index, source in enumerate(sources)
        )
        return DesiredStateRequest(sources, refs, waited)

    async def _sync(
        self,
        app: Application,
        state: OperationState,
        project: Project,
        settings: ReconcilerSettings,
        kinds: Catalog,
        app_state: AppState,
    ) -> OperationStep:
        request = state.request.sync
        options = SyncOptions.from_lists(request.options)  # argo: the requester copies the options of the Application
        comparison = _with_real_live_manifests(app_state)
        if options.is_on("RespectIgnoreDifferences"):
            comparison = await keep_ignored_fields(app, comparison, settings)
        occasion = OperationContext(app, state.revision or " ".join(state.revisions), state.started, state.retries)
        live = {**app_state.live, **await self._list_hooks_and_namespace(app, comparison, occasion)}
        tasks = plan_tasks(comparison, request, occasion, options, live)
        prunes = sum(1 for pair in comparison.pairs if pair.desired is None)

        def is_permitted(key: ResourceKey, is_namespaced: bool) -> str:
            return find_permission_error(project, key, is_namespaced=is_namespaced, destination=app.destination)

        cluster, holds = (
            impersonate_service_account(self.cluster, app, project, settings),
            await self._build_wave_holds(app, tasks, kinds),
        )
        try:
            advanced = await advance_operation(
                state,
                tasks,
                app,
                options,
                cluster=cluster,
                assess_all=settings.assess_all,
                settings=settings.sync,
                now=self.now,
                find_refusal=lambda manifest: find_deletion_refusal(manifest, app, project, settings, kinds, options),
                check_permission=is_permitted,
                is_mass_prune=(
                    settings.confirms_mass_prune
                    and state.request.is_automated
                    and is_mass_prune(prunes, len(comparison.pairs))
                ),
                shared_resource=app_state.shared_resource,
                find_hold=holds,
                applied_messages=self._messages_of_attempt(app, state),
            )
        except Forbidden as error:
            if cluster is self.cluster:
                raise
            # The account may not even read the objects that it must change. A retry would fail too.
            return self._finish_or_retry(
                state, replace(state, phase=OperationPhase.FAILED, message=str(error)), may_retry=False
            )
        if advanced.state.phase.is_over:
            return self._finish_or_retry(state, advanced.state)
        return OperationStep(advanced.state, advanced.wait if advanced.wait is not None else MAX_STEP_WAIT_SECONDS)

    def drop_comparison(self, app: Application) -> None:
        """Free the comparison of an operation that is over."""
        self._memos[app.key].get_connection(self.cluster).operation_comparison = None

    def forget_operation(self, app: Application) -> None:
        """Free what was remembered of an operation that was rejected, or whose end is written."""
        self.drop_comparison(app)
        self._memos[app.key].get_connection(self.cluster).applied_messages = None

    def _messages_of_attempt(self, app: Application, state: OperationState) -> AppliedMessages:
        """Return the messages of this attempt so far; a new attempt starts with none."""
        attempt, memo = (state.started, state.retries), self._memos[app.key].get_connection(self.cluster)
        if memo.applied_messages is None or memo.applied_messages[0] != attempt:
            memo.applied_messages = attempt, {}
        return memo.applied_messages[1]

    def _finish_or_retry(
        self, before: OperationState, after: OperationState, *, may_retry: bool = True
    ) -> OperationStep:
        """Finish the operation, or schedule the next attempt."""
        finished = after.finished or format_timestamp(self.now())
        next_state = schedule_retry_or_finish(
            before, replace(after, finished=finished), self.now(), may_retry=may_retry
        )
        return OperationStep(
            next_state, seconds_until_retry(next_state, self.now()) if is_waiting_for_retry(next_state) else None
        )

    async def _build_wave_holds(
        self, app: Application, tasks: Sequence[PlannedTask], kinds: Catalog
    ) -> Callable[[int], WaveHold | None]:
        """Return a function that decides if notebooks hold a wave, from their newest state."""
        if NOTEBOOK_JOB not in kinds:
            return lambda wave: None
        own_keys = {task.key for task in tasks if task.key.group_kind == NOTEBOOK_JOB and task.desired is not None}
        is_cached = self.comparer.is_kind_cached(NOTEBOOK_JOB)
        listed = () if is_cached else (await self.cluster.list(NOTEBOOK_JOB)).items

        def find_hold(wave: int) -> WaveHold | None:
            # The cache counts even if the kind is not fully cached: it may have newer objects than the list.
            jobs = {key_of(job): job for job in (*listed, *self.comparer.cache.list(NOTEBOOK_JOB))}
            keys = own_keys | set(jobs) | (self.comparer.cluster.list_written(NOTEBOOK_JOB) if is_cached else set())
            newest = (self.comparer.cluster.find_newest(key, jobs.get(key)) for key in keys)
            return find_wave_hold(wave, [job for job in newest if job is not None], app, own_keys)

        return find_hold

    async def _list_hooks_and_namespace(
        self, app: Application, comparison: AppComparison, occasion: OperationContext
    ) -> dict[ResourceKey, Manifest]:
        """Return the live hooks of this operation and the destination namespace, which are in no pair."""
        namespace_key = ResourceKey(*NAMESPACE, "", app.destination.namespace)
        keys = [namespace_key, *(task.key for task in plan_hook_tasks(comparison.hooks, occasion, {}))]
        newest = ((key, self.comparer.cluster.find_newest(key, self.comparer.cache.get(key))) for key in keys)
        live = {key: manifest for key, manifest in newest if manifest is not None}
        if app.policy.namespace_metadata is not None and (namespace := live.get(namespace_key)) is not None:
            live[namespace_key] = await self.comparer.fetch_full_object(namespace)  # for its field managers
        return live


def _has_hooks_to_remove(state: OperationState) -> bool:
    """True if hooks of the operation run, or if they may run because it is being terminated."""
    has_running_hook = any(result.hook and result.hook_phase is OperationPhase.RUNNING for result in state.results)
    return state.phase is OperationPhase.TERMINATING or has_running_hook


def _with_real_live_manifests(app_state: AppState) -> AppComparison:
    """Replace live manifests that were adapted for the comparison by the real ones, for the apply."""
    pairs = [
        pair if app_state.live.get(pair.key, pair.live) is pair.live else replace(pair, live=app_state.live[pair.key])
        for pair in app_state.comparison.pairs
    ]
    return replace(app_state.comparison, pairs=pairs)


async def keep_ignored_fields(
    app: Application, comparison: AppComparison, settings: ReconcilerSettings
) -> AppComparison:
    """argo: RespectIgnoreDifferences: fields that are not compared keep their live values when they are applied."""
    diff_options = build_diff_options(app, settings.diff)
    questions = [
        question
        for pair in comparison.pairs
        if pair.desired is not None
        for question in list_respect_jq_questions(pair.desired, pair.live, diff_options)
    ]
    removed = await evaluate_jq(settings, diff_options, questions)
    pairs = [
        replace(pair, desired=keep_ignored_live_values(pair.desired, pair.live, diff_options, jq_results=removed))
        if pair.desired is not None and pair.live is not None
        else pair
        for pair in comparison.pairs
    ]
    return replace(comparison, pairs=pairs)


def format_conditions(conditions: Iterable[AppCondition]) -> str:
    """argo: format the conditions that stop an operation as its message."""
    return ";".join(f"{condition.type}: {condition.message}" for condition in conditions)
