"""Page of one notebook run: `/notebooks/{ns}/{name}[/runs/{id}]`, with cells, outputs and triggers.

In: a request. Out: the page, a frame for HTML outputs, or a new run. Never: puts markup of a notebook into the page
itself: its HTML is served alone, under a policy that forbids scripts and requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.features.notebooks import board
from argosy.features.notebooks.board import Note, RunView, Told
from argosy.features.notebooks.cell_outputs import Output, ShownCell, html_of, shown_cells
from argosy.features.notebooks.cell_sources import SourceCells, sources_of
from argosy.features.notebooks.executed_notebook import executed
from argosy.features.notebooks.jobs import JobDesk
from argosy.features.notebooks.list_page import RUNNING
from argosy.gitops.application_client.client import clock
from argosy.web.live_updates.live_parts import Live, is_in_namespace
from argosy.web.middleware.response_headers import FRAMED
from argosy.web.owned_objects import RUN, application_path, cluster_to_change, notebook
from argosy.web.page_templates import part, render_page_state
from argosy.web.request import Asked, Refused
from argosy.web.responses import Page, Redirect, Text
from argosy.web.route import May, Route

MOST_OPEN: Final = 40
FRAME: Final = """<!doctype html><meta charset="utf-8"><title>an output</title><style>
body { font: 13px/1.5 system-ui, sans-serif; margin: 8px; } table { border-collapse: collapse; }
td, th { border: 1px solid #ccc; padding: 2px 8px; text-align: right; }</style>
"""
STATES: Final = {"Success": "ok", "Failure": "failed", "Skipped": "waiting"}


@dataclass(frozen=True)
class CellView:
    """A cell as shown in the page: source if known, outputs, findings."""

    index: int
    state: str
    type: str = "code"
    time: str = ""
    source: str = ""
    count: int | None = None
    outputs: tuple[Output, ...] = ()
    frames: tuple[str, ...] = ()  # URL of the HTML of each output; "" if it has none
    error: str = ""
    notes: tuple[Note, ...] = ()
    is_open: bool = False

    @property
    def first(self) -> str:
        """First line of the cell, for its heading."""
        said = next((each.text for each in self.outputs if each.kind in ("text", "error")), "")
        text = self.source or self.error or said
        return next((line.strip() for line in text.splitlines() if line.strip()), "")[:120]


async def page(asked: Asked) -> Page:
    return Page("notebooks/notebook.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    view = _view(asked)
    row = view.row
    cells, source_note = await cells_of(asked, view)
    running = view.is_last and row.is_running
    phase = row.phase if view.is_last else (view.attempt.phase if view.attempt else "Pending")
    return {
        "title": row.name,
        "is_live": True,
        "section": "notebooks",
        "state": {"Failed": "bad", "Running": "busy", "Succeeded": "ok"}.get(phase, ""),
        "crumbs": _crumbs(asked, row),
        "view": view,
        "row": row,
        "phase": phase,
        "told": row.message if view.is_last else view.why,
        "cells": cells,
        "source_note": source_note,
        "strip": strip_of(view, cells),
        "app_path": application_path(asked, asked.subject),
        "may_run": asked.may("applications", RUN, asked.thing),
        "whole": [each for each in view.notes if each.cell < 0],
        "reload_after": 3 if running else None,
    }


def _crumbs(asked: Asked, row: Any) -> list[tuple[str, str]]:
    found = [("Notebooks", "/notebooks"), (row.namespace, f"/notebooks?q={row.namespace}")]
    return [*found, (row.name, row.path)] if "id" in asked.values else found


def _view(asked: Asked) -> RunView:
    given = asked.values.get("id")
    number = int(given) if given and given.isascii() and given.isdecimal() and len(given) < 10 else None
    view = board.view(asked.subject, number, clock()) if given is None or number is not None else None
    if view is None:
        raise Refused
    return view


def kept(asked: Asked, view: RunView) -> dict[str, Any] | None:
    """The executed notebook, if this machine has it."""
    run = view.attempt
    return executed(asked.site.options.runs, asked.subject, run.generation, run.number) if run else None


async def cells_of(asked: Asked, view: RunView) -> tuple[list[CellView], str]:
    """The cells, and a note about their sources, which come from Git if the notebook did not run on this machine."""
    told = {each.index: each for each in view.cells}
    found = kept(asked, view)
    sources = SourceCells(shown_cells(found)) if found else await sources_of(asked, view)
    shown = {each.index: each for each in sources.cells}
    states = {index: _state(each) if found else _remembered_state(each, view) for index, each in shown.items()}
    base = f"{view.row.path}/runs/{view.attempt.number if view.attempt else 0}/html"
    cells = [
        _cell(index, told.get(index), shown.get(index), states.get(index, "waiting"), view, base)
        for index in sorted({*told, *shown})
    ]
    return _opened(cells), sources.note


def _opened(cells: list[CellView]) -> list[CellView]:
    """Open the cells that need attention; if there are none, open all cells of a short notebook."""
    wanted = {each.index for each in cells if each.state in ("failed", "noted")}
    is_short = not wanted and len(cells) <= MOST_OPEN
    return [replace(each, is_open=is_short or each.index in wanted) for each in cells]


def _cell(index: int, told: Told | None, shown: ShownCell | None, state: str, view: RunView, base: str) -> CellView:
    """`state` applies if the job status does not contain the cell."""
    notes = tuple(each for each in view.notes if each.cell == index)
    state = STATES.get(told.status, "waiting") if told else state
    if state == "ok" and any(each.severity != "info" for each in notes):
        state = "noted"
    outputs = shown.outputs if shown and shown.outputs else _said(told)
    frames = tuple(f"{base}/{index}/{place}" if each.kind == "html" else "" for place, each in enumerate(outputs))
    return CellView(
        index,
        state,
        shown.type if shown else "code",
        told.time if told else "",
        shown.source if shown else "",
        shown.count if shown else None,
        outputs,
        frames,
        told.error if told and not any(each.kind == "error" for each in outputs) else "",
        notes,
    )


def _remembered_state(cell: ShownCell, view: RunView) -> str:
    """State of a cell of which only the source is known: from the job's cell strip, otherwise unknown."""
    if cell.type != "code":
        return "waiting"
    strip = {each.index: each.state for each in view.row.strip} if view.is_last else {}
    return strip.get(cell.index, "unknown")


def _state(shown: ShownCell) -> str:
    """State of a cell that only the executed notebook describes."""
    if shown.type != "code" or shown.count is None:
        return "waiting"
    return "failed" if any(each.kind == "error" and "Traceback" in each.text for each in shown.outputs) else "ok"


def _said(told: Told | None) -> tuple[Output, ...]:
    return (Output("text", told.output),) if told and told.output else ()


def strip_of(view: RunView, cells: list[CellView]) -> list[dict[str, str]]:
    """The cells of the page and, while the notebook runs, the next ones."""
    found = {each.index: (each.state, each.time) for each in cells if each.type == "code"}
    text = {each.index for each in cells if each.type != "code"}
    if view.is_last:
        found |= {each.index: (each.state, each.time) for each in view.row.strip if each.index not in {*found, *text}}
    words = {
        "ok": "succeeded", "failed": "failed", "noted": "noted", "running": "running", "waiting": "not run",
        "unknown": "not recorded",
    }  # fmt: skip
    known = {each.index for each in cells}
    return [
        {
            "state": state,
            "title": f"cell {index}: {words[state]}{f', {time}' if time else ''}",
            "url": f"#cell-{index}" if index in known else "",
        }
        for index, (state, time) in sorted(found.items())
    ]


async def framed(asked: Asked) -> Text:
    """The HTML of one output alone: without origin, scripts and network access."""
    found = kept(asked, _view(asked))
    places = [asked.values[name] for name in ("cell", "output")]
    if found is None or not all(each.isascii() and each.isdecimal() and len(each) < 7 for each in places):
        raise Refused
    html = html_of(found, int(places[0]), int(places[1]))
    if html is None:
        raise Refused
    return Text(FRAME + html, "text/html; charset=utf-8", headers=(("content-security-policy", FRAMED),))


async def run_again(asked: Asked) -> Redirect:
    desk = JobDesk(cluster_to_change(asked, asked.subject), asked.site.desk.where)
    await desk.run_again(asked.subject)
    return Redirect(f"/notebooks/{asked.values['ns']}/{asked.values['name']}?said=run-again")


SEE = May("applications", "get", notebook)
HTML = "/notebooks/{ns}/{name}/runs/{id}/html/{cell}/{output}"
ROUTES = (
    Route("GET", "/notebooks/{ns}/{name}", SEE, page, "A notebook job and its last run, as a page."),
    Route("GET", "/notebooks/{ns}/{name}/runs/{id}", SEE, page, "One run of a notebook job, as a page."),
    Route("GET", HTML, SEE, framed, "The HTML of an output, confined to a frame."),
    Route("POST", "/notebooks/{ns}/{name}/run", May("applications", RUN, notebook), run_again, "Run a notebook again."),
)


async def build_updates(asked: Asked) -> dict[str, str]:
    shown = await values(asked)
    cells = part("notebooks/parts.html", "cell_list", shown["cells"], shown["source_note"], shown["view"].is_last)
    return {
        "job-state": part("notebooks/parts.html", "job_state", shown["phase"], shown["told"]),
        "cell-strip": part("notebooks/parts.html", "strip", shown["strip"]),
        "nbcells": cells,
        "runs": part("notebooks/parts.html", "runs", shown["view"]),
        **render_page_state(shown),
    }


LIVE = (
    Live("/notebooks/{ns}/{name}", SEE, build_updates, RUNNING, is_in_namespace),
    Live("/notebooks/{ns}/{name}/runs/{id}", SEE, build_updates, RUNNING, is_in_namespace),
)
