"""Caches the doctor's errors for other pages.

In: a request, the lock of examinations. Out: errors by Application and of the installation, at most about a minute old
while pages are open. Never: errors for a caller who may not see the doctor; two examinations at once; a page that waits
for a long one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.doctor.examination_summary import DoctorReport
from argosy.features.doctor.installation_checks import CheckState, InstallationCheck
from argosy.features.doctor.service import DoctorOptions, examine_installation
from argosy.gitops.analysis.diagnosis_table_and_score import INSTALLATION, DiagnosisLine
from argosy.gitops.analysis.live_view import render_duration
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.redaction.per_application_secret_masks import mask_texts
from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey
from argosy.web.objects_of_visible_applications import (
    ALL_APPLICATIONS,
    can_see_all_applications,
    list_visible_applications,
)
from argosy.web.request import RequestContext

log = logging.getLogger(__name__)
PAGE_WAIT_SECONDS: Final = 1.0
RESULT_LIFETIME_SECONDS: Final = 60.0
MAX_EXAMINATION_SECONDS: Final = 60.0


@dataclass(frozen=True)
class DoctorError:
    cause: str
    rule: str = ""
    fix: str = ""
    id: str = ""  # stable while the error lasts; the cause may contain an age


@dataclass(frozen=True)
class DoctorErrors:
    by_application: Mapping[ResourceKey, tuple[DoctorError, ...]] = field(default_factory=dict)
    installation: tuple[DoctorError, ...] = ()
    note: str = ""  # why the errors are unknown or old


class ExaminationCache:
    """The last result for the whole installation, for all callers, and the running examination."""

    def __init__(self, lock: asyncio.Lock, clock: Callable[[], float] = time.monotonic) -> None:
        """`lock` is held by the examination that a user asked for."""
        self._lock, self._clock = lock, clock
        self._errors: DoctorErrors | None = None
        self._errors_at: float | None = None  # when they were found
        self._looked_at = 0.0  # when an examination last ended, or failed
        self._task: asyncio.Task[DoctorErrors] | None = None

    async def find(self, reader: ApplicationReader) -> DoctorErrors:
        """Return the last result if it is fresh, or if the new examination takes long."""
        cached = self._errors
        if cached is not None and self._clock() - self._looked_at < RESULT_LIFETIME_SECONDS:
            return cached
        if self._task is None:
            self._task = asyncio.create_task(self._examine(reader))
        task = self._task
        done, _ = await asyncio.wait([task], timeout=PAGE_WAIT_SECONDS)
        if done:
            return task.result()
        if cached is None or self._errors_at is None:
            return DoctorErrors(note="The doctor is still looking; reload the page in a moment.")
        age = render_duration(self._clock() - self._errors_at)
        return replace(cached, note=f"The doctor is looking again. These errors are from {age} ago.")

    async def _examine(self, reader: ApplicationReader) -> DoctorErrors:
        """Keep the known errors if the examination fails."""
        before = self._errors or DoctorErrors()
        try:
            errors = await examine_errors(reader, self._lock)
            self._errors_at = self._clock()
        except TimeoutError:
            errors = replace(before, note=f"The doctor did not finish within {MAX_EXAMINATION_SECONDS:.0f} s.")
        except ArgosyError as error:
            errors = replace(before, note=f"The doctor cannot look: {error}")
        except Exception:  # the task may have no waiter, and the rest of the page works without it
            log.exception("the examination for the summary failed")
            errors = replace(before, note="The doctor failed; the server's log says why.")
        finally:
            self._task = None
        self._errors, self._looked_at = errors, self._clock()
        return errors


def can_see_doctor(request: RequestContext) -> bool:
    """True for callers who may see all Applications, because findings mention others and the installation."""
    return request.is_allowed("applications", "get", ALL_APPLICATIONS)


async def load_visible_errors(request: RequestContext, examinations: ExaminationCache) -> DoctorErrors:
    """Return the errors that the caller may see: none for a caller who may not see the doctor."""
    if not can_see_doctor(request) or not list_visible_applications(request):
        return DoctorErrors()
    errors = await examinations.find(request.cluster_view.reader)
    applications = list_visible_applications(request)
    keys = {key_of(application) for application in applications}
    return DoctorErrors(
        {
            key: mask_texts(application_errors, request.masks.get_mask_for_application(f"{key.namespace}/{key.name}"))
            for key, application_errors in errors.by_application.items()
            if key in keys
        },
        errors.installation if can_see_all_applications(request, len(applications)) else (),
        errors.note,
    )


async def examine_errors(reader: ApplicationReader, lock: asyncio.Lock) -> DoctorErrors:
    """Examine everything by the statuses in the cluster view's cache; compare nothing, and probe no model."""
    async with lock:
        pass  # a user's examination goes first, and never waits for this one
    async with asyncio.timeout(MAX_EXAMINATION_SECONDS):
        report = DoctorReport(await examine_installation(reader.service, reader, DoctorOptions(is_quick=True)))
    keys = {app.name: app.app.key for app in report.examination.chosen}
    by_application: dict[ResourceKey, tuple[DoctorError, ...]] = {}
    for line in _list_error_lines(report):
        if key := keys.get(line.app):
            by_application[key] = (*by_application.get(key, ()), _build_error(line))
    return DoctorErrors(by_application, _list_installation_errors(report))


def _list_error_lines(report: DoctorReport) -> list[DiagnosisLine]:
    return [line for line in report.lines if line.severity is Severity.ERROR]


def _list_installation_errors(report: DoctorReport) -> tuple[DoctorError, ...]:
    """List findings without an Application, and failed checks of the installation."""
    checks = [build_check_error(check) for check in report.examination.checks if check.mark is CheckState.BAD]
    return (*checks, *(_build_error(line) for line in _list_error_lines(report) if line.app == INSTALLATION))


def build_check_error(check: InstallationCheck) -> DoctorError:
    return DoctorError(f"{check.name}: {check.text}", id=f"check {check.name}")


def _build_error(line: DiagnosisLine) -> DoctorError:
    finding = line.finding
    return DoctorError(
        line.cause, finding.rule.id if finding else "", line.fix, finding.fingerprint if finding else line.app
    )
