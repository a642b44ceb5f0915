"""`/apps/{ns}/{name}/diff`: differences with cause and author.

In: a request. Out: a page. Never: writes; a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.errors import RenderError, UnknownRef, UserError
from argosy.features.applications.diff.field_changes import SHOWN, Change, Counts, changes, counts
from argosy.features.applications.page_parts.frame import app_of, framed, head_parts
from argosy.gitops.application import Application
from argosy.gitops.application_client.difference_causes import another, explained, unrendered
from argosy.gitops.application_client.differences import Differing, differing, in_short, with_causes, with_places
from argosy.gitops.application_client.drift_attribution import Doings
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.reconciler.app_state import Look
from argosy.web.caller_clients import reader_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

MOST = 200  # objects of one page


NOTHING = Counts(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Compared:
    changes: tuple[Change, ...] = ()
    counts: Counts = NOTHING
    fault: str = ""  # why the comparison failed
    advice: str = ""
    hidden: tuple[str, ...] = ()  # kinds without permission to read
    brief: str = ""  # the drift text of the list
    other: str = ""  # the revision compared with, if it is not the target revision


async def compared(
    reader: Reader, app: Application, refs: Sequence[str] = (), show: str = "all", *, has_lines: bool = False
) -> Compared:
    try:
        look = await reader.look(app, refs, is_judged=False)
    except (RenderError, UnknownRef) as error:
        cause = await unrendered(reader, app, error, refs)
        return Compared(fault=cause.text, advice=cause.next)
    except UserError as error:
        what, _, advice = str(error).partition("; ")
        return Compared(fault=what, advice=advice)
    if not look.is_whole:
        return Compared(fault=_said(look))
    found = differing(look.comparison, reader.rules.compare.masked_annotations)
    number = counts(found)
    found = await told(reader, app, look, found[:MOST], refs)
    brief = in_short(found) if not refs and number.total <= MOST else ""
    hidden, other = tuple(reader.hidden(app, look)), another(app, refs, look.assembled.revisions)
    return Compared(changes(app, found, show, has_lines=has_lines), number, hidden=hidden, other=other, brief=brief)


async def told(
    reader: Reader, app: Application, look: Look, found: Sequence[Differing], refs: Sequence[str] = ()
) -> list[Differing]:
    placed = with_places(found, look.assembled.rendered)
    return with_causes(placed, await explained(reader, app, look, placed, refs))


def _said(look: Look) -> str:
    return next((each.message for each in look.conditions if each.type.is_error), "the comparison failed")


async def diff_page(asked: Asked) -> Answer:
    app, query = app_of(asked), asked.query
    show = query.text("show") if query.text("show") in SHOWN else "all"
    ref = query.text("with").strip()
    form = "yaml" if query.text("format") == "yaml" else "fields"
    made = await compared(reader_of(asked), app, (ref,) if ref else (), show, has_lines=form == "yaml")
    if made.brief and not made.hidden:
        asked.site.part(Doings).keep(app, asked.site.lookout.cache.get, made.brief)
    values = await framed(asked, "diff", made=made, show=show, ref=ref, format=form)
    return Page("applications/diff.html", values)


async def diff_parts(asked: Asked) -> dict[str, str]:
    """Render only the head: the diff does not change while it is read; `data-still` marks it as outdated."""
    return await head_parts(asked)


ROUTES = (Route("GET", "/apps/{ns}/{name}/diff", May("applications", "get", application), diff_page, "Differences"),)
