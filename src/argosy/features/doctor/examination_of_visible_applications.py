"""Examines the Applications that the caller may see.

In: a request and options. Out: DoctorReport. Never: shows an Application that the caller may not see; runs two
examinations at a time.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from argosy.errors import TransientError, UserError
from argosy.features.doctor.examination_summary import DoctorReport
from argosy.features.doctor.service import DoctorOptions, examine_installation
from argosy.gitops.redaction.per_application_secret_masks import ApplicationMasks
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.objects_of_visible_applications import can_see_all_applications, list_visible_applications
from argosy.web.request import NotFoundOrForbidden, RequestContext

MAX_PATTERN_CHARACTERS: Final = 64  # of the `match` parameter
TURN_TIMEOUT_SECONDS: Final = 8.0  # to wait for the previous examination


async def examine_visible(request: RequestContext, options: DoctorOptions, lock: asyncio.Lock) -> DoctorReport:
    """Examine what the caller may see; `lock` allows one examination at a time, because it is expensive."""
    options = limit_to_visible(request, options)
    try:
        async with asyncio.timeout(TURN_TIMEOUT_SECONDS):
            await lock.acquire()
    except TimeoutError:
        raise TransientError("another examination is running; try again in a moment") from None
    try:
        return mask_report(
            DoctorReport(await examine_installation(build_service(request), build_reader(request), options)),
            request.masks,
        )
    finally:
        lock.release()


def mask_report(report: DoctorReport, masks: ApplicationMasks) -> DoctorReport:
    """Return a report whose lines do not quote the Secrets of the Applications that they are about."""
    for number, line in enumerate(report.lines):
        hide = masks.get_mask_for_application(line.app).mask_text
        report.lines[number] = replace(line, state=hide(line.state), cause=hide(line.cause), fix=hide(line.fix))
    return report


def limit_to_visible(request: RequestContext, options: DoctorOptions) -> DoctorOptions:
    """Limit the options to visible Applications, by name.

    The pattern of a web caller is never run as a regular expression: backtracking could block the server.
    """
    if len(options.pattern) > MAX_PATTERN_CHARACTERS:
        raise UserError(
            f"is longer than {MAX_PATTERN_CHARACTERS} letters; send parts of names, with | between them", where="match"
        )
    applications, parts = list_visible_applications(request), options.pattern.split("|")
    sees_all = can_see_all_applications(request, len(applications))
    if sees_all and not options.pattern:
        return options
    full_names = (
        (str(application["metadata"]["namespace"]), str(application["metadata"]["name"]))
        for application in applications
    )
    names = tuple(
        f"{namespace}/{name}"
        for namespace, name in full_names
        if (not options.names or {name, f"{namespace}/{name}"} & set(options.names))
        and any(part in name for part in parts)
    )
    if not names and sees_all:
        raise UserError(f"no Application has {options.pattern!r} in its name; send part of a name", where="match")
    if not names:
        raise NotFoundOrForbidden
    return replace(options, names=names, pattern="")
