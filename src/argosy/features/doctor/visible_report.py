"""Examines the Applications that the caller may see.

In: a request and options. Out: DoctorReport. Never: shows an Application that the caller may not see; runs two
examinations at a time.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from argosy.errors import TransientError, UserError
from argosy.features.doctor.report import Report
from argosy.features.doctor.service import Wanted, examine
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.middleware.application_masks import ApplicationMasks, masks_of
from argosy.web.owned_objects import sees_everything, visible_applications
from argosy.web.request import Asked, Refused

LONGEST: Final = 64  # of the `match` parameter
PATIENCE: Final = 8.0  # to wait for the previous examination


class Turn(asyncio.Lock):
    """Serializes examinations."""


async def examined(asked: Asked, wanted: Wanted) -> Report:
    """Examine what the caller may see; one examination at a time, because it is expensive."""
    wanted = permitted(asked, wanted)
    gate = asked.site.part(Turn)
    try:
        async with asyncio.timeout(PATIENCE):
            await gate.acquire()
    except TimeoutError:
        raise TransientError("another examination is running; try again in a moment") from None
    try:
        return masked_report(Report(await examine(desk_of(asked), reader_of(asked), wanted)), masks_of(asked))
    finally:
        gate.release()


def masked_report(report: Report, masks: ApplicationMasks) -> Report:
    """Return a report whose lines do not quote the Secrets of the Applications that they are about."""
    for number, line in enumerate(report.lines):
        hide = masks.by_name(line.app).hide_text
        report.lines[number] = replace(line, state=hide(line.state), cause=hide(line.cause), fix=hide(line.fix))
    return report


def permitted(asked: Asked, wanted: Wanted) -> Wanted:
    """Limit the options to visible Applications, by name.

    The pattern of a web caller is never run as a regular expression: backtracking could block the server.
    """
    if len(wanted.pattern) > LONGEST:
        raise UserError(f"is longer than {LONGEST} letters; send parts of names, with | between them", where="match")
    found, parts = visible_applications(asked), wanted.pattern.split("|")
    sees_all = sees_everything(asked, len(found))
    if sees_all and not wanted.pattern:
        return wanted
    places = ((str(each["metadata"]["namespace"]), str(each["metadata"]["name"])) for each in found)
    names = tuple(
        f"{namespace}/{name}"
        for namespace, name in places
        if (not wanted.names or {name, f"{namespace}/{name}"} & set(wanted.names))
        and any(part in name for part in parts)
    )
    if not names and sees_all:
        raise UserError(f"no Application has {wanted.pattern!r} in its name; send part of a name", where="match")
    if not names:
        raise Refused
    return replace(wanted, names=names, pattern="")
