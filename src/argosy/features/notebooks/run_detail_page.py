"""Page of one notebook run: `/notebooks/{ns}/{name}[/runs/{id}]`, with cells, outputs and triggers.

In: a request. Out: the page, a frame for HTML outputs, or a new run. Never: puts markup of a notebook into the page
itself: its HTML is served alone, under a policy that forbids scripts and requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from argosy.features.notebooks import job_views
from argosy.features.notebooks.cell_sources_from_git import NotebookSources, SourceCells, load_run_sources
from argosy.features.notebooks.job_views import RunView, StoredCellResult, StoredFinding
from argosy.features.notebooks.list_page import TOUCHES_JOBS
from argosy.features.notebooks.local_executed_notebook_lookup import load_executed_notebook
from argosy.features.notebooks.notebook_job_lookup_and_rerun import NotebookJobClient
from argosy.features.notebooks.sanitized_cells import DisplayCell, DisplayOutput, find_html, list_display_cells
from argosy.gitops.application_client.application_service import utc_now
from argosy.web.live_updates.live_page_definitions import LivePage, is_in_page_namespace
from argosy.web.objects_of_visible_applications import (
    RUN_ACTION,
    build_impersonating_cluster,
    get_owner_page_path,
    resolve_notebook_job,
)
from argosy.web.page_templates import render_macro, render_page_state
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import FRAME_SECURITY_POLICY, PageResponse, RedirectResponse, TextResponse
from argosy.web.route import RequiresPermission, Route

MAX_OPEN_CELLS: Final = 40
FRAME_HEAD: Final = """<!doctype html><meta charset="utf-8"><title>an output</title><style>
body { font: 13px/1.5 system-ui, sans-serif; margin: 8px; } table { border-collapse: collapse; }
td, th { border: 1px solid #ccc; padding: 2px 8px; text-align: right; }</style>
"""
CELL_STATES: Final = {"Success": "ok", "Failure": "failed", "Skipped": "waiting"}


@dataclass(frozen=True)
class CellView:
    """A cell as shown in the page: source if known, outputs, findings."""

    index: int
    state: str
    type: str = "code"
    time: str = ""
    source: str = ""
    count: int | None = None
    outputs: tuple[DisplayOutput, ...] = ()
    frames: tuple[str, ...] = ()  # URL of the HTML of each output; "" if it has none
    error: str = ""
    notes: tuple[StoredFinding, ...] = ()
    is_open: bool = False

    @property
    def first(self) -> str:
        """First line of the cell, for its heading."""
        output_text = next((output.text for output in self.outputs if output.kind in ("text", "error")), "")
        text = self.source or self.error or output_text
        return next((line.strip() for line in text.splitlines() if line.strip()), "")[:120]


async def page(sources: NotebookSources, request: RequestContext) -> PageResponse:
    return PageResponse("notebooks/notebook.html", await build_values(request, sources))


async def build_values(request: RequestContext, sources: NotebookSources) -> dict[str, Any]:
    view = _load_run_view(request)
    row = view.row
    cells, source_note = await build_cells(request, view, sources)
    running = view.is_last and row.is_running
    phase = row.phase if view.is_last else (view.attempt.phase if view.attempt else "Pending")
    return {
        "title": row.name,
        "is_live": True,
        "section": "notebooks",
        "state": {"Failed": "bad", "Running": "busy", "Succeeded": "ok"}.get(phase, ""),
        "crumbs": _build_crumbs(request, row),
        "view": view,
        "row": row,
        "phase": phase,
        "told": row.message if view.is_last else view.why,
        "cells": cells,
        "source_note": source_note,
        "strip": build_cell_strip(view, cells),
        "app_path": get_owner_page_path(request, request.subject),
        "may_run": request.is_allowed("applications", RUN_ACTION, request.rbac_object),
        "whole": [finding for finding in view.notes if finding.cell < 0],
        "reload_after": 3 if running else None,
    }


def _build_crumbs(request: RequestContext, row: Any) -> list[tuple[str, str]]:
    crumbs = [("Notebooks", "/notebooks"), (row.namespace, f"/notebooks?q={row.namespace}")]
    return [*crumbs, (row.name, row.path)] if "id" in request.path_parameters else crumbs


def _load_run_view(request: RequestContext) -> RunView:
    run_id = request.path_parameters.get("id")
    number = int(run_id) if run_id and run_id.isascii() and run_id.isdecimal() and len(run_id) < 10 else None
    view = (
        job_views.build_run_view(request.subject, number, utc_now()) if run_id is None or number is not None else None
    )
    if view is None:
        raise NotFoundOrForbidden
    return view


def find_executed_notebook(request: RequestContext, view: RunView) -> dict[str, Any] | None:
    """The executed notebook, if this machine has it."""
    run = view.attempt
    return (
        load_executed_notebook(request.options.notebook_runs_folder, request.subject, run.generation, run.number)
        if run
        else None
    )


async def build_cells(request: RequestContext, view: RunView, sources: NotebookSources) -> tuple[list[CellView], str]:
    """The cells, and a note about their sources, which come from Git if the notebook did not run on this machine."""
    results = {entry.index: entry for entry in view.cells}
    executed_notebook = find_executed_notebook(request, view)
    source_cells = (
        SourceCells(list_display_cells(executed_notebook))
        if executed_notebook
        else await load_run_sources(request, view, sources)
    )
    display_cells = {entry.index: entry for entry in source_cells.cells}
    states = {
        index: _infer_state(entry) if executed_notebook else _find_recorded_state(entry, view)
        for index, entry in display_cells.items()
    }
    html_base = f"{view.row.path}/runs/{view.attempt.number if view.attempt else 0}/html"
    cells = [
        _build_cell(index, results.get(index), display_cells.get(index), states.get(index, "waiting"), view, html_base)
        for index in sorted({*results, *display_cells})
    ]
    return _mark_open_cells(cells), source_cells.note


def _mark_open_cells(cells: list[CellView]) -> list[CellView]:
    """Open the cells that need attention; if there are none, open all cells of a short notebook."""
    open_indexes = {cell.index for cell in cells if cell.state in ("failed", "noted")}
    is_short = not open_indexes and len(cells) <= MAX_OPEN_CELLS
    return [replace(cell, is_open=is_short or cell.index in open_indexes) for cell in cells]


def _build_cell(
    index: int,
    result: StoredCellResult | None,
    display_cell: DisplayCell | None,
    state: str,
    view: RunView,
    html_base: str,
) -> CellView:
    """`state` applies if the job status does not contain the cell."""
    notes = tuple(entry for entry in view.notes if entry.cell == index)
    state = CELL_STATES.get(result.status, "waiting") if result else state
    if state == "ok" and any(entry.severity != "info" for entry in notes):
        state = "noted"
    outputs = display_cell.outputs if display_cell and display_cell.outputs else _build_text_output(result)
    frames = tuple(
        f"{html_base}/{index}/{position}" if entry.kind == "html" else "" for position, entry in enumerate(outputs)
    )
    return CellView(
        index,
        state,
        display_cell.type if display_cell else "code",
        result.time if result else "",
        display_cell.source if display_cell else "",
        display_cell.count if display_cell else None,
        outputs,
        frames,
        result.error if result and not any(entry.kind == "error" for entry in outputs) else "",
        notes,
    )


def _find_recorded_state(cell: DisplayCell, view: RunView) -> str:
    """State of a cell of which only the source is known: from the job's cell strip, otherwise unknown."""
    if cell.type != "code":
        return "waiting"
    strip = {strip_cell.index: strip_cell.state for strip_cell in view.row.strip} if view.is_last else {}
    return strip.get(cell.index, "unknown")


def _infer_state(display_cell: DisplayCell) -> str:
    """State of a cell that only the executed notebook describes."""
    if display_cell.type != "code" or display_cell.count is None:
        return "waiting"
    return (
        "failed"
        if any(output.kind == "error" and "Traceback" in output.text for output in display_cell.outputs)
        else "ok"
    )


def _build_text_output(result: StoredCellResult | None) -> tuple[DisplayOutput, ...]:
    return (DisplayOutput("text", result.output),) if result and result.output else ()


def build_cell_strip(view: RunView, cells: list[CellView]) -> list[dict[str, str]]:
    """The cells of the page and, while the notebook runs, the next ones."""
    states = {entry.index: (entry.state, entry.time) for entry in cells if entry.type == "code"}
    text_indexes = {entry.index for entry in cells if entry.type != "code"}
    if view.is_last:
        states |= {
            entry.index: (entry.state, entry.time)
            for entry in view.row.strip
            if entry.index not in {*states, *text_indexes}
        }
    words = {
        "ok": "succeeded", "failed": "failed", "noted": "noted", "running": "running", "waiting": "not run",
        "unknown": "not recorded",
    }  # fmt: skip
    page_indexes = {entry.index for entry in cells}
    return [
        {
            "state": state,
            "title": f"cell {index}: {words[state]}{f', {time}' if time else ''}",
            "url": f"#cell-{index}" if index in page_indexes else "",
        }
        for index, (state, time) in sorted(states.items())
    ]


async def serve_html_frame(request: RequestContext) -> TextResponse:
    """The HTML of one output alone: without origin, scripts and network access."""
    executed_notebook = find_executed_notebook(request, _load_run_view(request))
    positions = [request.path_parameters[name] for name in ("cell", "output")]
    if executed_notebook is None or not all(
        position.isascii() and position.isdecimal() and len(position) < 7 for position in positions
    ):
        raise NotFoundOrForbidden
    html = find_html(executed_notebook, int(positions[0]), int(positions[1]))
    if html is None:
        raise NotFoundOrForbidden
    return TextResponse(
        FRAME_HEAD + html, "text/html; charset=utf-8", headers=(("content-security-policy", FRAME_SECURITY_POLICY),)
    )


async def run_again(request: RequestContext) -> RedirectResponse:
    client = NotebookJobClient(build_impersonating_cluster(request, request.subject), request.service.cluster_name)
    await client.run_again(request.subject)
    return RedirectResponse(
        f"/notebooks/{request.path_parameters['ns']}/{request.path_parameters['name']}?said=run-again"
    )


READ_PERMISSION = RequiresPermission("applications", "get", resolve_notebook_job)
HTML_PATH = "/notebooks/{ns}/{name}/runs/{id}/html/{cell}/{output}"


def build_routes(sources: NotebookSources) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/notebooks/{ns}/{name}",
            READ_PERMISSION,
            partial(page, sources),
            "A notebook job and its last run, as a page.",
        ),
        Route(
            "GET",
            "/notebooks/{ns}/{name}/runs/{id}",
            READ_PERMISSION,
            partial(page, sources),
            "One run of a notebook job, as a page.",
        ),
        Route("GET", HTML_PATH, READ_PERMISSION, serve_html_frame, "The HTML of an output, confined to a frame."),
        Route(
            "POST",
            "/notebooks/{ns}/{name}/run",
            RequiresPermission("applications", RUN_ACTION, resolve_notebook_job),
            run_again,
            "Run a notebook again.",
        ),
    )


async def build_updates(sources: NotebookSources, request: RequestContext) -> dict[str, str]:
    page_values = await build_values(request, sources)
    cells = render_macro(
        "notebooks/parts.html",
        "cell_list",
        page_values["cells"],
        page_values["source_note"],
        page_values["view"].is_last,
    )
    return {
        "job-state": render_macro("notebooks/parts.html", "job_state", page_values["phase"], page_values["told"]),
        "cell-strip": render_macro("notebooks/parts.html", "strip", page_values["strip"]),
        "nbcells": cells,
        "runs": render_macro("notebooks/parts.html", "runs", page_values["view"]),
        **render_page_state(page_values),
    }


def build_live_pages(sources: NotebookSources) -> tuple[LivePage, ...]:
    return (
        LivePage(
            "/notebooks/{ns}/{name}",
            READ_PERMISSION,
            partial(build_updates, sources),
            TOUCHES_JOBS,
            is_in_page_namespace,
        ),
        LivePage(
            "/notebooks/{ns}/{name}/runs/{id}",
            READ_PERMISSION,
            partial(build_updates, sources),
            TOUCHES_JOBS,
            is_in_page_namespace,
        ),
    )
