"""Page `/notebooks`: the notebook jobs and their results.

In: a request. Out: rows. Never: shows a job of an Application that the caller may not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.features.notebooks import board
from argosy.features.notebooks.board import JobRow
from argosy.gitops.application import APPLICATION
from argosy.gitops.application_client.client import clock
from argosy.kube.names import GroupKind
from argosy.web.live_updates.live_parts import Live, touches_kinds
from argosy.web.owned_objects import JOB, application_path, visible
from argosy.web.page_templates import part, render_page_state
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Filtered, Route

COMMANDS: Final = ("argosy notebook run train.ipynb", "argosy notebook list", "argosy demo")
PHASES: Final = ("Failed", "Running", "Pending", "Succeeded")


@dataclass(frozen=True)
class Listed:
    row: JobRow
    app_path: str
    app: str


async def page(asked: Asked) -> Page:
    return Page("notebooks/notebooks.html", values(asked))


def values(asked: Asked) -> dict[str, Any]:
    now, rows = clock(), list[Listed]()
    for each in visible(asked, JOB):
        path = application_path(asked, each)
        rows.append(Listed(board.row(each, now), path, path.rpartition("/")[2]))
    wanted, phase = asked.query.text("q").lower(), asked.query.text("phase")
    shown = [each for each in rows if wanted in _text(each) and phase in ("", each.row.phase)]
    phases = [each.row.phase for each in rows]
    return {
        "title": "Notebooks",
        "is_live": True,
        "section": "notebooks",
        "state": "bad" if "Failed" in phases else "busy" if "Running" in phases else "ok" if rows else "",
        "rows": shown,
        "total": len(rows),
        "q": asked.query.text("q"),
        "phases": [(each, phases.count(each)) for each in PHASES if each in phases],
        "chosen_phase": phase if phase in PHASES else "",
        "commands": COMMANDS,
    }


def _text(listed: Listed) -> str:
    row = listed.row
    return f"{row.namespace}/{row.name} {row.notebook} {row.message} {listed.app}".lower()


ROUTES = (Route("GET", "/notebooks", Filtered("applications", "get"), page, "Notebook jobs, as a page."),)


async def build_updates(asked: Asked) -> dict[str, str]:
    shown = values(asked)
    rows = {listed.row.id: part("notebooks/parts.html", "job_row", listed) for listed in shown["rows"]}
    return rows | render_page_state(shown)


RUNNING: Final = touches_kinds(JOB, GroupKind(*APPLICATION))
LIVE = (Live("/notebooks", Filtered("applications", "get"), build_updates, RUNNING),)
