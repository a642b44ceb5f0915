"""`/apps/{ns}/{name}/diff`: differences with cause and author.

In: a request. Out: a page. Never: writes; a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.errors import RenderError, UnknownRef, UserError
from argosy.features.applications.diff.page_values import (
    FILTERS,
    ChangeCounts,
    ObjectDifference,
    build_changes,
    count_changes,
)
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    render_head_parts,
)
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.diff_presentation import (
    DifferingObject,
    add_locations,
    list_differing_objects,
    summarize_differences,
    with_causes,
)
from argosy.gitops.application_client.difference_cause_evidence import (
    describe_untracked_refs,
    explain_differences,
    explain_render_error,
)
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

MAX_OBJECTS = 200  # objects of one page


NO_CHANGES = ChangeCounts(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    changes: tuple[ObjectDifference, ...] = ()
    counts: ChangeCounts = NO_CHANGES
    fault: str = ""  # why the comparison failed
    advice: str = ""
    hidden: tuple[str, ...] = ()  # kinds without permission to read
    brief: str = ""  # the drift text of the list
    other: str = ""  # the revision compared with, if it is not the target revision


async def compare_for_page(
    reader: ApplicationReader, app: Application, refs: Sequence[str] = (), show: str = "all", *, has_lines: bool = False
) -> ComparisonResult:
    try:
        app_state = await reader.compare(app, refs, assess_health=False)
    except (RenderError, UnknownRef) as error:
        cause = await explain_render_error(reader, app, error, refs)
        return ComparisonResult(fault=cause.text, advice=cause.next)
    except UserError as error:
        problem, _, advice = str(error).partition("; ")
        return ComparisonResult(fault=problem, advice=advice)
    if not app_state.is_complete:
        return ComparisonResult(fault=_error_message(app_state))
    differing_objects = list_differing_objects(app_state.comparison, reader.reconciler_settings.diff.masked_annotations)
    totals = count_changes(differing_objects)
    differing_objects = await add_locations_and_causes(reader, app, app_state, differing_objects[:MAX_OBJECTS], refs)
    brief = summarize_differences(differing_objects) if not refs and totals.total <= MAX_OBJECTS else ""
    hidden, other = (
        tuple(reader.list_unreadable_kinds(app, app_state)),
        describe_untracked_refs(app, refs, app_state.desired.revisions),
    )
    return ComparisonResult(
        build_changes(app, differing_objects, show, has_lines=has_lines),
        totals,
        hidden=hidden,
        other=other,
        brief=brief,
    )


async def add_locations_and_causes(
    reader: ApplicationReader,
    app: Application,
    app_state: AppState,
    differing_objects: Sequence[DifferingObject],
    refs: Sequence[str] = (),
) -> list[DifferingObject]:
    located = add_locations(differing_objects, app_state.desired.rendered)
    return with_causes(located, await explain_differences(reader, app, app_state, located, refs))


def _error_message(app_state: AppState) -> str:
    return next(
        (condition.message for condition in app_state.conditions if condition.type.is_error), "the comparison failed"
    )


async def render_diff_page(request: RequestContext) -> WebResponse:
    app, query = get_application(request), request.query
    show = query.get_text("show") if query.get_text("show") in FILTERS else "all"
    ref = query.get_text("with").strip()
    form = "yaml" if query.get_text("format") == "yaml" else "fields"
    comparison = await compare_for_page(
        build_reader(request), app, (ref,) if ref else (), show, has_lines=form == "yaml"
    )
    if comparison.brief and not comparison.hidden:
        request.drift_texts.store(app, request.cluster_view.cache.get, comparison.brief)
    values = await build_page_values(request, "diff", made=comparison, show=show, ref=ref, format=form)
    return PageResponse("applications/diff.html", values)


async def render_diff_head_parts(request: RequestContext) -> dict[str, str]:
    """Render only the head: the diff does not change while it is read; `data-still` marks it as outdated."""
    return await render_head_parts(request)


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/diff",
        RequiresPermission("applications", "get", resolve_application),
        render_diff_page,
        "Differences",
    ),
)
