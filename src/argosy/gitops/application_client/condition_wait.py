"""Watches an Application until its wait conditions are met.

In: Applications, wait conditions. Out: how the wait ended. Never: waits for conditions that need action, unless
requested; waits for a cluster that stays unreachable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from argosy.errors import TransientError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.stuck_pods import UNSCHEDULABLE_REASON, describe_stuck_pods
from argosy.gitops.application_client.wait_conditions import WaitConditions, WaitFailure, find_wait_failure
from argosy.gitops.coexistence.argocd_detection import detect_engines_or_unknown
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, sleep
from argosy.kube.controller.object_condition_wait import wait_for_object
from argosy.kube.objects import Manifest

NO_TIMEOUT_SECONDS: Final = 3e8  # seconds
NO_CONTROLLER_SECONDS: Final = 10.0  # seconds without a controller until the user is informed
CHECK_INTERVAL_SECONDS: Final = 2.0  # seconds between checks of objects that the Application's watch does not cover
FAILURE_CONFIRM_SECONDS: Final = 5.0  # seconds that an uncertain failure must last
UNREACHABLE_SECONDS: Final = 30.0  # seconds without an answer until the cluster counts as unreachable

OnApplication = Callable[[Application], None]
ReportProgress = Callable[[str], None]


class WaitOutcome(StrEnum):
    REACHED = "reached"
    TOO_LATE = "too late"
    HOPELESS = "hopeless"
    GONE = "gone"


class WaitResult(NamedTuple):
    outcome: WaitOutcome
    app: Application | None
    reason: str = ""


class _ApplicationWait:
    """State of one wait: the last Application, and since when it cannot succeed."""

    def __init__(
        self,
        service: ApplicationService,
        app: Application,
        conditions: WaitConditions,
        on_application: OnApplication,
        clock: Clock,
    ) -> None:
        self.service, self.key, self.conditions, self.on_application, self.clock = (
            service,
            app.key,
            conditions,
            on_application,
            clock,
        )
        self.last: Application | None = app
        self.reason = ""
        self._failing_since: dict[str, float] = {}
        self._reported: set[str] = set()

    def is_done(self, manifest: Manifest | None) -> bool:
        if manifest is None:
            self.last = None
            return True
        self.last = read_application(manifest)
        self.on_application(self.last)
        if not self.conditions.list_unmet(self.last):
            return True
        return self.is_failed(find_wait_failure(self.last, self.conditions))

    def is_failed(self, failure: WaitFailure | None) -> bool:
        if failure is None or not self.conditions.gives_up_early:
            self._failing_since = {}
            return False
        now = self.clock.monotonic()
        self._failing_since = {failure.reason: self._failing_since.get(failure.reason, now)}
        if failure.is_certain or now - self._failing_since[failure.reason] >= FAILURE_CONFIRM_SECONDS:
            self.reason = failure.reason
            return True
        return False

    async def check_now(self, report: ReportProgress) -> bool:
        """Check Pods and the current Application; return True if the wait is over."""
        if self.is_done(await self.service.get_manifest(self.key)):
            return True
        if (
            self.last is None
            or not self.conditions.gives_up_early
            or not (self.conditions.wants_healthy or self.conditions.operation)
        ):
            return False
        if stuck := await describe_stuck_pods(self.service, self.last):
            self.reason = stuck[0]
            return True
        for pod in await describe_stuck_pods(self.service, self.last, frozenset({UNSCHEDULABLE_REASON})):
            if pod not in self._reported:
                report(f"{self.last.name}: waiting for a node: {pod}")
            self._reported.add(pod)
        return False

    async def check_periodically(self, report: ReportProgress) -> None:
        """Check periodically; returns if the wait is over, raises if the cluster stays unreachable."""
        answered_at, is_reported = self.clock.monotonic(), False
        while True:
            await sleep(self.clock, CHECK_INTERVAL_SECONDS)
            try:
                if await self.check_now(report):
                    return
                answered_at, is_reported = self.clock.monotonic(), False
            except TransientError as error:
                if self.clock.monotonic() - answered_at >= UNREACHABLE_SECONDS:
                    raise
                if not is_reported:
                    report(f"{error}; retrying for {UNREACHABLE_SECONDS:g} s")
                is_reported = True

    def build_result(self) -> WaitResult:
        if self.last is None:
            return WaitResult(WaitOutcome.REACHED if self.conditions.is_deleted else WaitOutcome.GONE, None)
        return WaitResult(WaitOutcome.HOPELESS if self.reason else WaitOutcome.REACHED, self.last, self.reason)


def _ignore_message(text: str) -> None:
    """Default for `report`: ignores the message."""


async def wait_for_conditions(
    service: ApplicationService,
    app: Application,
    conditions: WaitConditions,
    timeout_seconds: float,
    on_application: OnApplication,
    report: ReportProgress = _ignore_message,
    clock: Clock = SYSTEM_CLOCK,
) -> WaitResult:
    """Wait until all conditions are met; `on_application` gets every state on the way."""
    wait = _ApplicationWait(service, app, conditions, on_application, clock)
    watch_task = asyncio.create_task(
        wait_for_object(service.cluster, app.key, wait.is_done, timeout_seconds or NO_TIMEOUT_SECONDS)
    )
    check_task = asyncio.create_task(wait.check_periodically(report))
    try:
        await asyncio.wait({watch_task, check_task}, return_when=asyncio.FIRST_COMPLETED)
        if watch_task.done() and not watch_task.result():
            return WaitResult(WaitOutcome.TOO_LATE, wait.last)
        if not watch_task.done():
            check_task.result()
        return wait.build_result()
    finally:
        for task in (watch_task, check_task):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def is_operation_started(app: Application) -> bool:
    """True if `status.operationState` belongs to the latest request, not to the previous operation."""
    return app.operation is None or (app.state is not None and not app.state.phase.is_over)


async def describe_missing_controller(service: ApplicationService, app: Application) -> str:
    """Describe why no controller has started the operation."""
    engines = await detect_engines_or_unknown(service.cluster, service.control_namespace)
    message = "no controller has started the operation yet"
    if engines.is_argosy_only(app.annotations, app.namespace):
        return f"{message}; is one running? argosy controller"
    return f"{message}; delivered by: {engines.describe_deliverer(app.annotations, app.namespace)}"


async def wait_for_operation(
    service: ApplicationService,
    app: Application,
    timeout_seconds: float,
    on_application: OnApplication,
    report: ReportProgress,
) -> WaitResult:
    """Wait until the operation that was just requested is over."""
    started = asyncio.Event()

    def observe(application: Application) -> None:
        if is_operation_started(application):
            started.set()
        on_application(application)

    async def report_if_not_started() -> None:
        try:
            await asyncio.wait_for(started.wait(), NO_CONTROLLER_SECONDS)
        except TimeoutError:
            report(f"{app.name}: {await describe_missing_controller(service, app)}")

    reminder = asyncio.create_task(report_if_not_started())
    try:
        return await wait_for_conditions(
            service, app, WaitConditions(operation=True, gives_up_early=False), timeout_seconds, observe, report
        )
    finally:
        reminder.cancel()


__all__ = [
    "OnApplication",
    "ReportProgress",
    "WaitConditions",
    "WaitOutcome",
    "WaitResult",
    "describe_missing_controller",
    "is_operation_started",
    "wait_for_conditions",
    "wait_for_operation",
]
