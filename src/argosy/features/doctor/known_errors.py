"""Caches the doctor's errors for other pages.

In: a request. Out: errors by Application and of the installation, at most about a minute old while pages are open.
Never: errors for a caller who may not see the doctor; two examinations at once; a page that waits for a long one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.doctor.headline import HeadCheck, Mark
from argosy.features.doctor.report import Report
from argosy.features.doctor.service import Wanted, examine
from argosy.features.doctor.visible_report import Turn
from argosy.gitops.analysis.diagnosis import INSTALLATION, Line
from argosy.gitops.analysis.live_view import span
from argosy.gitops.analysis.violation import Severity
from argosy.kube.names import ResourceKey
from argosy.kube.objects import key_of
from argosy.web.middleware.application_masks import mask_texts, masks_of
from argosy.web.owned_objects import EVERYTHING, sees_everything, visible_applications
from argosy.web.request import Asked
from argosy.web.site import Site

log = logging.getLogger(__name__)
PAGE_WAIT_SECONDS: Final = 1.0
KEPT_SECONDS: Final = 60.0
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


class Examinations:
    """The last result for the whole installation, for all callers, and the running examination."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: DoctorErrors | None = None
        self._errors_at: float | None = None  # when they were found
        self._looked_at = 0.0  # when an examination last ended, or failed
        self._task: asyncio.Task[DoctorErrors] | None = None

    async def find(self, site: Site) -> DoctorErrors:
        """Return the last result if it is fresh, or if the new examination takes long."""
        known = self._known
        if known is not None and self._clock() - self._looked_at < KEPT_SECONDS:
            return known
        if self._task is None:
            self._task = asyncio.create_task(self._examine(site))
        task = self._task
        done, _ = await asyncio.wait([task], timeout=PAGE_WAIT_SECONDS)
        if done:
            return task.result()
        if known is None or self._errors_at is None:
            return DoctorErrors(note="The doctor is still looking; reload the page in a moment.")
        age = span(self._clock() - self._errors_at)
        return replace(known, note=f"The doctor is looking again. These errors are from {age} ago.")

    async def _examine(self, site: Site) -> DoctorErrors:
        """Keep the known errors if the examination fails."""
        before = self._known or DoctorErrors()
        try:
            found = await examine_errors(site)
            self._errors_at = self._clock()
        except TimeoutError:
            found = replace(before, note=f"The doctor did not finish within {MAX_EXAMINATION_SECONDS:.0f} s.")
        except ArgosyError as error:
            found = replace(before, note=f"The doctor cannot look: {error}")
        except Exception:  # the task may have no waiter, and the rest of the page works without it
            log.exception("the examination for the summary failed")
            found = replace(before, note="The doctor failed; the server's log says why.")
        finally:
            self._task = None
        self._known, self._looked_at = found, self._clock()
        return found


def may_see_doctor(asked: Asked) -> bool:
    """True for callers who may see all Applications, because findings mention others and the installation."""
    return asked.may("applications", "get", EVERYTHING)


async def doctor_errors(asked: Asked) -> DoctorErrors:
    """Return the errors that the caller may see: none for a caller who may not see the doctor."""
    if not may_see_doctor(asked) or not visible_applications(asked):
        return DoctorErrors()
    errors = await asked.site.part(Examinations).find(asked.site)
    applications = visible_applications(asked)
    keys = {key_of(application) for application in applications}
    return DoctorErrors(
        {
            key: mask_texts(found, masks_of(asked).by_name(f"{key.namespace}/{key.name}"))
            for key, found in errors.by_application.items()
            if key in keys
        },
        errors.installation if sees_everything(asked, len(applications)) else (),
        errors.note,
    )


async def examine_errors(site: Site) -> DoctorErrors:
    """Examine everything by the statuses in the cluster view's cache; compare nothing, and probe no model."""
    async with site.part(Turn):
        pass  # a user's examination goes first, and never waits for this one
    reader = site.lookout.reader
    async with asyncio.timeout(MAX_EXAMINATION_SECONDS):
        report = Report(await examine(reader.desk, reader, Wanted(is_quick=True)))
    keys = {app.name: app.app.key for app in report.found.chosen}
    by_application: dict[ResourceKey, tuple[DoctorError, ...]] = {}
    for line in _errors(report):
        if key := keys.get(line.app):
            by_application[key] = (*by_application.get(key, ()), _error(line))
    return DoctorErrors(by_application, _of_installation(report))


def _errors(report: Report) -> list[Line]:
    return [line for line in report.lines if line.severity is Severity.ERROR]


def _of_installation(report: Report) -> tuple[DoctorError, ...]:
    """List findings without an Application, and failed checks of the installation."""
    checks = [error_of_check(check) for check in report.found.checks if check.mark is Mark.BAD]
    return (*checks, *(_error(line) for line in _errors(report) if line.app == INSTALLATION))


def error_of_check(check: HeadCheck) -> DoctorError:
    return DoctorError(f"{check.name}: {check.text}", id=f"check {check.name}")


def _error(line: Line) -> DoctorError:
    finding = line.finding
    return DoctorError(line.cause, finding.rule.id if finding else "", line.fix, finding.mark if finding else line.app)
