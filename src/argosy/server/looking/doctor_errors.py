"""Errors that the doctor knows, for pages that show them beside other things.

In: a request. Out: errors by Application and of the installation, a few seconds old at most. Never: for who may not see
the doctor; a rule of its own; a page held up by an examination that takes long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from argosy.advise.diagnosis import INSTALLATION, Line
from argosy.advise.finding import Severity
from argosy.desk.doctor.examining import Wanted
from argosy.desk.doctor.head import Mark
from argosy.desk.doctor.report import Report
from argosy.model.errors import ArgosyError
from argosy.model.names import ResourceKey
from argosy.server.asked import Asked
from argosy.server.looking.examining import examined
from argosy.server.looking.owned import EVERYTHING, sees_everything, visible_applications

PAGE_WAIT_SECONDS: Final = 3.0
EXAMINATION_SECONDS: Final = 6.0
KEPT_SECONDS: Final = 5.0  # a page that changes often does not examine each time
MAX_KEPT: Final = 64  # callers with different permissions


@dataclass(frozen=True)
class DoctorError:
    cause: str
    rule: str = ""
    fix: str = ""


@dataclass(frozen=True)
class DoctorErrors:
    by_application: Mapping[ResourceKey, tuple[DoctorError, ...]] = field(default_factory=dict)
    installation: tuple[DoctorError, ...] = ()
    note: str = ""  # why they are not known


class Examinations:
    """The last answer for each set of permissions, and examinations under way."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, DoctorErrors]] = {}
        self._tasks: dict[str, asyncio.Task[DoctorErrors]] = {}

    async def find(self, asked: Asked) -> DoctorErrors:
        who = asked.site.identities.permissions(asked.caller).digest
        known = self._known.get(who)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        task = self._tasks.get(who)
        if task is None:
            task = self._tasks[who] = asyncio.create_task(self._examine(asked, who))
        done, _ = await asyncio.wait([task], timeout=PAGE_WAIT_SECONDS)
        if done:
            return task.result()
        return DoctorErrors(note="The doctor is still looking; reload the page in a moment.")

    async def _examine(self, asked: Asked, who: str) -> DoctorErrors:
        try:
            found = await examine_errors(asked)
        except ArgosyError as error:
            found = DoctorErrors(note=f"The doctor cannot look: {error}")
        finally:
            self._tasks.pop(who, None)
        while len(self._known) >= MAX_KEPT:
            del self._known[next(iter(self._known))]
        self._known[who] = time.monotonic() + KEPT_SECONDS, found
        return found


def may_see_doctor(asked: Asked) -> bool:
    """Findings name other Applications and objects of the installation, so the doctor is not for everybody."""
    return asked.may("applications", "get", EVERYTHING)


async def doctor_errors(asked: Asked) -> DoctorErrors:
    """None for who may not see the doctor."""
    if not may_see_doctor(asked) or not visible_applications(asked):
        return DoctorErrors()
    return await asked.site.part(Examinations).find(asked)


async def examine_errors(asked: Asked) -> DoctorErrors:
    """By what statuses tell: nothing is compared, no model is asked."""
    is_whole = sees_everything(asked, len(visible_applications(asked)))
    report = await examined(asked, Wanted(is_quick=True, seconds=EXAMINATION_SECONDS))
    keys = {app.name: app.app.key for app in report.found.chosen}
    by_application: dict[ResourceKey, tuple[DoctorError, ...]] = {}
    for line in _errors(report):
        if key := keys.get(line.app):
            by_application[key] = (*by_application.get(key, ()), _error(line))
    return DoctorErrors(by_application, _of_installation(report) if is_whole else ())


def _errors(report: Report) -> list[Line]:
    return [line for line in report.lines if line.severity is Severity.ERROR]


def _of_installation(report: Report) -> tuple[DoctorError, ...]:
    """Findings that are no Application's, and checks that say that the installation itself does not work."""
    checks = [DoctorError(f"{each.name}: {each.text}") for each in report.found.checks if each.mark is Mark.BAD]
    return (*checks, *(_error(line) for line in _errors(report) if line.app == INSTALLATION))


def _error(line: Line) -> DoctorError:
    return DoctorError(line.cause, line.finding.rule.id if line.finding else "", line.fix)
