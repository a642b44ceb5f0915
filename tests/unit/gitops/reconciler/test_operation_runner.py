"""One step of an operation before anything is synced: windows, retry backoff, timeouts and refusals."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from argosy.errors import Forbidden, UserError
from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    RetryStrategy,
    SyncRequest,
    read_application,
    read_source,
)
from argosy.gitops.application.project_spec import Project, SyncWindow
from argosy.gitops.policy.impersonation import ImpersonationPolicy
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.app_state_comparison import AppStateComparer
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.operation_runner import (
    BLOCKED_BY_WINDOW,
    MAX_STEP_WAIT_SECONDS,
    OperationRunner,
    OperationStep,
)
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.gitops.sync.operation_state_machine import TIMEOUT_MESSAGE
from argosy.kube.client import Cluster

pytestmark = pytest.mark.anyio
EVENING = datetime(2026, 1, 2, 21, 30, tzinfo=UTC)
NIGHT = EVENING + timedelta(hours=2)
SOURCE = {"repoURL": "https://git.example/x", "path": "dev"}
REACHED = "ComparisonError: Failed to load target state: the source was asked for"
NOT_COMPARED = cast(AppState, None)  # the operation ends before it is needed


class OnlyAsked:
    """Fails with a known error, which shows that the step was not blocked before."""

    async def build(self, *_: Any) -> DesiredState:
        raise UserError("the source was asked for")


class RecordsRequests:
    def __init__(self) -> None:
        self.requests: list[DesiredStateRequest] = []

    async def build(self, _app: Any, _project: Any, request: DesiredStateRequest, *_: Any) -> DesiredState:
        self.requests.append(request)
        raise UserError("the source was asked for")


class FoundOnce:
    """Resolves refs on the first call; on the second, refs that are not pinned would resolve differently."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def build(self, _app: Any, _project: Any, request: DesiredStateRequest, *_: Any) -> DesiredState:
        self.asked.append(request.refs)
        if len(self.asked) > 1:
            raise UserError("the source was asked for")
        return DesiredState(request.sources, tuple(ref or "9" * 40 for ref in request.refs), ())


class MayNotRead:
    """The engine itself lacks a permission."""

    async def build(self, *_: Any) -> DesiredState:
        raise Forbidden("the engine may not read this", code=403)


def app() -> Application:
    return read_application({"metadata": {"name": "models"}, "spec": {"source": SOURCE}})


def state(started: datetime = EVENING, **more: Any) -> OperationState:
    sync, retry = more.pop("sync", SyncRequest()), more.pop("retry", RetryStrategy())
    request = OperationRequest(sync, username="" if more.get("is_automated") else "ann", retry=retry,
                               is_automated=more.pop("is_automated", False))  # fmt: skip
    return OperationState(request, started=started.isoformat(), has_result=True, **more)


async def stepped(
    operation_state: OperationState,
    now: datetime,
    *windows: SyncWindow,
    timeout: float = 0.0,
    assembler: Any = None,
    impersonates: bool = False,
) -> OperationStep:
    operator = OperationRunner(
        cast(Cluster, None),
        cast(DesiredStateBuilder, assembler or OnlyAsked()),
        cast(AppStateComparer, None),
        lambda: now,
        AppMemos(),
    )
    rules = ReconcilerSettings(
        cast(Repositories, None),
        cast(Any, None),
        sync=SyncSettings(timeout_seconds=timeout),
        impersonation=ImpersonationPolicy(impersonates),
    )
    project = Project(source_repos=("https://git.example/*",), windows=windows)
    return await operator.step(app(), operation_state, project, rules, {}, NOT_COMPARED)


def window(kind: str = "deny", **more: Any) -> SyncWindow:
    return SyncWindow(kind=kind, schedule="0 22 * * *", duration="8h", applications=("*",), **more)


@pytest.mark.parametrize(
    ("windows", "started", "is_automated", "goes_on"),
    [
        ([], NIGHT, True, True),
        ([window()], EVENING, True, False),
        ([window()], EVENING, False, False),
        ([window(sync_overrun=True)], EVENING, True, True),
        ([window(sync_overrun=True)], EVENING, False, True),
        ([window(sync_overrun=True)], NIGHT, True, False),
        ([window(sync_overrun=True), window()], EVENING, True, False),
        ([window(manual_sync=True)], NIGHT, False, True),
        ([window(manual_sync=True)], NIGHT, True, False),
    ],
)
async def test_running_operation_continues_only_if_windows_permit(
    windows: list[SyncWindow], started: datetime, is_automated: bool, goes_on: bool
) -> None:
    outcome = await stepped(state(started, is_automated=is_automated), NIGHT, *windows)
    if goes_on:
        assert (outcome.state.phase, outcome.state.message) == (OperationPhase.ERROR, REACHED)
    else:
        assert outcome.state.phase is OperationPhase.RUNNING and outcome.wait == MAX_STEP_WAIT_SECONDS
        assert outcome.state.message.startswith(f"{BLOCKED_BY_WINDOW}: ")


async def test_terminating_operation_is_not_blocked_by_windows() -> None:
    terminating = replace(state(), phase=OperationPhase.TERMINATING)
    assert (await stepped(terminating, NIGHT, window())).state.message == REACHED


async def test_timed_out_operation_does_not_wait_for_a_window() -> None:
    assert (await stepped(state(), NIGHT, window(), timeout=60)).state.message == REACHED


async def test_operation_gets_its_timeout_once_more_after_the_clock_was_set_back() -> None:
    passed = 0.0
    operator = OperationRunner(
        cast(Cluster, None),
        cast(DesiredStateBuilder, OnlyAsked()),
        cast(AppStateComparer, None),
        lambda: EVENING,
        AppMemos(),
        lambda: passed,
    )
    rules = ReconcilerSettings(cast(Repositories, None), cast(Any, None), sync=SyncSettings(timeout_seconds=60))
    project = Project(source_repos=("https://git.example/*",), windows=(window("allow"),))
    for started in (EVENING + timedelta(days=365), EVENING + timedelta(hours=1)):  # each operation has its own timeout
        for seconds, progress in (
            (0, OperationPhase.RUNNING),
            (59, OperationPhase.RUNNING),
            (2, OperationPhase.TERMINATING),
        ):
            passed += seconds
            outcome = await operator.step(app(), state(started), project, rules, {}, NOT_COMPARED)
            assert outcome.state.phase is progress
        assert outcome.state.message == TIMEOUT_MESSAGE and outcome.wait == 0


RESTING = state(finished=EVENING.isoformat(), retries=1, retry=RetryStrategy(limit=2, duration=100.0))


@pytest.mark.parametrize(
    ("after", "timeout", "wait"),
    [(0, 0.0, MAX_STEP_WAIT_SECONDS), (90, 0.0, 10.0), (90, 95.0, 10.0)],
)
async def test_operation_waits_until_its_next_attempt(after: float, timeout: float, wait: float) -> None:
    outcome = await stepped(RESTING, EVENING + timedelta(seconds=after), timeout=timeout)
    assert outcome.state == RESTING and outcome.wait == pytest.approx(wait)


async def test_next_attempt_starts_when_the_backoff_is_over() -> None:
    outcome = await stepped(RESTING, EVENING + timedelta(seconds=101))
    assert (outcome.state.finished, outcome.state.has_result, outcome.wait) == ("", False, 0.0)
    assert outcome.state.started == RESTING.started  # argo: all attempts share the time of the operation


async def test_timed_out_operation_does_not_wait_for_its_next_attempt() -> None:
    outcome = await stepped(RESTING, EVENING + timedelta(seconds=61), timeout=60)
    assert outcome.state.message.startswith(REACHED)


async def test_manifests_of_an_operation_replace_those_of_git() -> None:
    assembler = RecordsRequests()
    await stepped(state(sync=SyncRequest(manifests=("{}",))), EVENING, assembler=assembler)
    assert [(request.local_manifests, request.refs) for request in assembler.requests] == [(("{}",), ("",))]


async def test_sync_from_a_source_that_the_project_denies_is_refused() -> None:
    elsewhere = read_source({"repoURL": "https://elsewhere.example/x", "path": "dev"})
    outcome = await stepped(state(sync=SyncRequest(sources=(elsewhere,))), EVENING)
    assert outcome.state.phase is OperationPhase.ERROR
    expected = "InvalidSpecError: application repo https://elsewhere.example/x is not permitted in project "
    assert outcome.state.message.startswith(expected)


@pytest.mark.parametrize("revisions", [("a" * 40,), ("a" * 40, "b" * 40), ("a" * 40, "")])
async def test_rollback_keeps_the_revision_of_every_source(revisions: tuple[str, ...]) -> None:
    sources = tuple(read_source({**SOURCE, "path": f"part-{number}"}) for number in range(len(revisions)))
    host, operation_state = (
        FoundOnce(),
        replace(state(sync=SyncRequest(sources=sources, revisions=revisions)), has_result=False),
    )
    first = await stepped(operation_state, EVENING, assembler=host)
    await stepped(first.state, EVENING, assembler=host)
    assert host.asked == [revisions, tuple(revision or "9" * 40 for revision in revisions)]


async def test_missing_permission_of_the_engine_does_not_end_the_operation() -> None:
    with pytest.raises(Forbidden, match="the engine may not read this"):
        await stepped(state(), EVENING, assembler=MayNotRead(), impersonates=True)
