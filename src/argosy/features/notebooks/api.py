"""argosy API for notebook jobs: list, read, list runs, run again.

In: a request. Out: small JSON documents. Never: returns a job of an Application that the caller may not see, or cell
outputs that are not in the job status.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from argosy.features.notebooks import board
from argosy.features.notebooks.board import Attempt, JobRow, RunView
from argosy.features.notebooks.jobs import JobDesk
from argosy.gitops.application_client.client import clock
from argosy.kube.objects import Manifest
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import FIELDS, PAGING, chosen, page
from argosy.web.owned_objects import JOB, RUN, application_of, cluster_to_change, notebook, visible
from argosy.web.request import Asked, Refused
from argosy.web.responses import Json
from argosy.web.route import Filtered, May, Parameter, Route

TAG: Final = "notebooks"
WHOSE: Final = "Requires get on its Application; jobs without an Application require get on all Applications."
ROW: Final = schema.fields(
    name=schema.TEXT, namespace=schema.TEXT, application=schema.TEXT, phase=schema.TEXT,
    step=schema.TEXT, message=schema.TEXT, notebook=schema.TEXT, repository=schema.TEXT, ref=schema.TEXT,
    commit=schema.TEXT, started=schema.TEXT, ended=schema.TEXT, seconds={"type": ["number", "null"]},
    trigger=schema.TEXT, golden=schema.TEXT, cells=schema.fields(done=schema.COUNT, total=schema.COUNT),
    lastRun=schema.COUNT,
)  # fmt: skip
RUN_SHAPE: Final = schema.fields(
    number=schema.COUNT, generation=schema.COUNT, phase=schema.TEXT, message=schema.TEXT,
    commit=schema.TEXT, started=schema.TEXT, ended=schema.TEXT, seconds={"type": ["number", "null"]},
    artefacts=schema.many(schema.ANY),
)  # fmt: skip


def document(asked: Asked, job: Manifest) -> dict[str, Any]:
    row: JobRow = board.row(job, clock())
    app = application_of(asked, job)
    return {
        "name": row.name,
        "namespace": row.namespace,
        "application": f"{app['metadata']['namespace']}/{app['metadata']['name']}" if app else "",
        "phase": row.phase,
        "step": row.step,
        "message": row.message,
        "notebook": row.notebook,
        "repository": row.url,
        "ref": row.ref,
        "commit": row.commit,
        "started": row.started,
        "ended": row.ended,
        "seconds": row.seconds,
        "trigger": row.trigger,
        "golden": row.golden,
        "cells": {"done": row.done, "total": row.total},
        "lastRun": row.last,
    }


def _run(run: Attempt) -> dict[str, Any]:
    return {
        "number": run.number,
        "generation": run.generation,
        "phase": run.phase,
        "message": run.message,
        "commit": run.commit,
        "started": run.started,
        "ended": run.ended,
        "seconds": run.seconds,
        "artefacts": [{"path": path, "digest": digest} for path, digest in run.artefacts],
    }


async def listed(asked: Asked) -> Json:
    query, namespace, phase = (asked.query.text(each) for each in ("q", "namespace", "phase"))
    every = [document(asked, each) for each in visible(asked, JOB)]
    found = [
        each
        for each in every
        if namespace in ("", each["namespace"])
        and phase in ("", each["phase"])
        and query.lower() in f"{each['namespace']}/{each['name']} {each['notebook']}".lower()
    ]
    return page(asked, found, lambda each: f"{each['namespace']}/{each['name']}")


async def got(asked: Asked) -> Json:
    view = _view(asked, None)
    more = {"runs": [_run(each) for each in view.attempts], **_detail(view)}
    return chosen(asked, {**document(asked, asked.subject), **more})


async def runs(asked: Asked) -> Json:
    view = _view(asked, None)
    return page(asked, view.attempts, lambda each: f"{10**9 - each.number:012}", tell=_run)  # newest first


async def one_run(asked: Asked) -> Json:
    given = asked.values["id"]
    if not (given.isascii() and given.isdecimal() and len(given) < 10):
        raise Refused
    view = _view(asked, int(given))
    return chosen(asked, {**(_run(view.attempt) if view.attempt else {}), **_detail(view)})


def _view(asked: Asked, number: int | None) -> RunView:
    found = board.view(asked.subject, number, clock())
    if found is None:
        raise Refused
    return found


def _detail(view: RunView) -> dict[str, Any]:
    """Details of one run besides its times; earlier runs have fewer."""
    return {
        "why": view.why,
        "told": [asdict(each) for each in view.cells],
        "notes": [asdict(each) for each in view.notes],
        "differences": [asdict(each) for each in view.differences],
        "setOff": [asdict(each) for each in view.set_off],
        "parameters": dict(view.parameters),
    }


async def run_again(asked: Asked) -> Json:
    desk = JobDesk(cluster_to_change(asked, asked.subject), asked.site.desk.where)
    return Json({"run": await desk.run_again(asked.subject)})


_PATH: Final = "/api/argosy/v1/notebooks"
_ONE: Final = f"{_PATH}/{{ns}}/{{name}}"
SEE: Final = May("applications", "get", notebook)
ROUTES = (
    Route(
        "GET", _PATH, Filtered("applications", "get"), listed, f"List notebook jobs. {WHOSE}",
        query=(
            Parameter("q", "Only jobs whose name or notebook contains this text."),
            Parameter("namespace", "Only jobs in this namespace."),
            Parameter("phase", "Only jobs in this phase: Pending, Running, Succeeded or Failed."), *PAGING,
        ),
        gives=schema.fields(metadata=schema.ANY, items=schema.many(ROW)), tag=TAG, operation="ListNotebooks",
    ),
    Route(
        "GET", _ONE, SEE, got, f"Read a notebook job and its last run. {WHOSE}", query=(FIELDS,), gives=ROW, tag=TAG,
        operation="GetNotebook",
    ),
    Route(
        "GET", f"{_ONE}/runs", SEE, runs, f"Runs of a notebook job, the newest first. {WHOSE}", query=PAGING,
        gives=schema.fields(metadata=schema.ANY, items=schema.many(RUN_SHAPE)), tag=TAG, operation="ListNotebookRuns",
    ),
    Route(
        "GET", f"{_ONE}/runs/{{id}}", SEE, one_run, f"One run of a notebook job. {WHOSE}", query=(FIELDS,),
        gives=RUN_SHAPE, tag=TAG, operation="GetNotebookRun",
    ),
    Route(
        "POST", f"{_ONE}/runs", May("applications", RUN, notebook), run_again,
        "Run a notebook job again. Requires the action run on its Application.",
        gives=schema.fields("run", run=schema.TEXT), tag=TAG, operation="RunNotebook",
    ),
)  # fmt: skip
