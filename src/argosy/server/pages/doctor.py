"""`/doctor`: what is wrong here, by its cause, with the command that mends it.

In: a request. Out: findings. Never: mends anything; tells of an Application to who may not see all of them.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from argosy.advise.diagnosis import Line
from argosy.desk.doctor.examining import Wanted, examine
from argosy.desk.doctor.report import Report
from argosy.model.errors import TransientError, UserError
from argosy.server.answers import Page
from argosy.server.asked import Asked, Refused
from argosy.server.behalf import desk_of, reader_of
from argosy.server.pages.application.causes import told
from argosy.server.pages.owned import everything, sees_everything, visible_applications
from argosy.server.routes import May, Parameter, Route

LONGEST: Final = 64  # letters of what names are to have
SECONDS: Final = 6.0
PATIENCE: Final = 8.0  # seconds that an examination waits for the one before
PROGRAMS: Final = ("argosy ", "argocd ", "kubectl ", "oc ", "git ")


async def page(asked: Asked) -> Page:
    return Page("doctor.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    """Quickly by what statuses tell; with `deep`, what is not well is compared, and what would help is proven."""
    is_deep = asked.query.flag("deep")
    report = await examined(asked, Wanted(is_quick=not is_deep, seconds=SECONDS))
    lines = sorted(report.lines, key=lambda each: (-each.severity.weight, each.cause, each.app))
    groups = [_group(asked, cause, list(found)) for cause, found in groupby(lines, key=lambda each: each.cause)]
    worst = {each["severity"] for each in groups}
    return {
        "title": "Doctor",
        "section": "settings",
        "state": "bad" if "error" in worst else "warn" if "warning" in worst else "ok",
        "crumbs": [("Settings", "/settings")],
        "checks": [{"name": each.name, "mark": str(each.mark), "text": each.text} for each in report.found.checks],
        "groups": groups,
        "apps": len(report.found.chosen),
        "notes": list(report.found.view.notes),
        "follow_ups": list(report.follow_ups()),
        "is_deep": is_deep,
    }


class Turn(asyncio.Lock):
    """Whose it is to be examined."""


async def examined(asked: Asked, wanted: Wanted) -> Report:
    """Of what the caller may see; one at a time, for it takes a while."""
    wanted = permitted(asked, wanted)
    gate = asked.site.part(Turn)
    try:
        async with asyncio.timeout(PATIENCE):
            await gate.acquire()
    except TimeoutError:
        raise TransientError("others are being examined; try again in a moment") from None
    try:
        return Report(await examine(desk_of(asked), reader_of(asked), wanted))
    finally:
        gate.release()


def permitted(asked: Asked, wanted: Wanted) -> Wanted:
    """As it was asked for; where some are denied, those of the others by their names.

    A pattern of a stranger's is never run as an expression: one that backtracks would hold up everybody.
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


def _group(asked: Asked, cause: str, lines: list[Line]) -> dict[str, Any]:
    first = lines[0]
    return {
        "cause": told(asked.site.lookout.cache.get, cause),
        "severity": first.severity.value,
        "rule": first.finding.rule.id if first.finding else "",
        "sure": first.finding.rule.why_sure if first.finding else "",
        "rows": [
            {
                "app": each.app,
                "state": each.state,
                "fix": each.fix,
                "word": each.remedy.word,
                "commands": commands_of(each.fix),
                "said": words_of(each.fix),
                "path": path_of(asked, each.app),
            }
            for each in lines
        ],
    }


def commands_of(text: str) -> list[str]:
    """What of an advice can be typed as it is."""
    return [part for part in _parts(text) if part.startswith(PROGRAMS)]


def words_of(text: str) -> str:
    """The rest of it."""
    return "; ".join(part for part in _parts(text) if not part.startswith(PROGRAMS))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"; |: (?=(?:argosy|argocd|kubectl|oc|git) )", text) if part.strip()]


def path_of(asked: Asked, app: str) -> str:
    namespace, _, name = app.rpartition("/")
    row = asked.site.lookout.row(namespace or asked.site.desk.control, name)
    return f"/apps/{row.namespace}/{row.name}" if row else ""


ROUTES = (
    Route(
        "GET", "/doctor", May("applications", "get", everything), page, "What is wrong, and what mends it.",
        query=(Parameter("deep", "Compare what is not well, and prove what would help.", "boolean"),),
    ),
)  # fmt: skip
