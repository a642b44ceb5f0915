"""argosy API for notebook jobs: list, read, list runs, run again.

In: a request. Out: small JSON documents. Never: returns a job of an Application that the caller may not see, or cell
outputs that are not in the job status.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from argosy.features.notebooks import job_views
from argosy.features.notebooks.job_views import JobRow, RunAttempt, RunView
from argosy.features.notebooks.notebook_job_lookup_and_rerun import NotebookJobClient
from argosy.gitops.application_client.application_service import utc_now
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import FIELDS, PAGING, build_page, select_fields
from argosy.web.objects_of_visible_applications import (
    RUN_ACTION,
    build_impersonating_cluster,
    find_owning_application,
    list_visible_objects,
    resolve_notebook_job,
)
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, Route

TAG: Final = "notebooks"
ACCESS_NOTE: Final = "Requires get on its Application; jobs without an Application require get on all Applications."
JOB_SCHEMA: Final = schema.build_object_schema(
    name=schema.STRING_SCHEMA,
    namespace=schema.STRING_SCHEMA,
    application=schema.STRING_SCHEMA,
    phase=schema.STRING_SCHEMA,
    step=schema.STRING_SCHEMA,
    message=schema.STRING_SCHEMA,
    notebook=schema.STRING_SCHEMA,
    repository=schema.STRING_SCHEMA,
    ref=schema.STRING_SCHEMA,
    commit=schema.STRING_SCHEMA,
    started=schema.STRING_SCHEMA,
    ended=schema.STRING_SCHEMA,
    seconds={"type": ["number", "null"]},
    trigger=schema.STRING_SCHEMA,
    golden=schema.STRING_SCHEMA,
    cells=schema.build_object_schema(done=schema.INTEGER_SCHEMA, total=schema.INTEGER_SCHEMA),
    lastRun=schema.INTEGER_SCHEMA,
)
RUN_SCHEMA: Final = schema.build_object_schema(
    number=schema.INTEGER_SCHEMA,
    generation=schema.INTEGER_SCHEMA,
    phase=schema.STRING_SCHEMA,
    message=schema.STRING_SCHEMA,
    commit=schema.STRING_SCHEMA,
    started=schema.STRING_SCHEMA,
    ended=schema.STRING_SCHEMA,
    seconds={"type": ["number", "null"]},
    artefacts=schema.build_array_schema(schema.OBJECT_SCHEMA),
)


def job_to_wire(request: RequestContext, job: Manifest) -> dict[str, Any]:
    row: JobRow = job_views.build_row(job, utc_now())
    app = find_owning_application(request, job)
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


def _run_to_wire(run: RunAttempt) -> dict[str, Any]:
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


async def list_jobs(request: RequestContext) -> JsonResponse:
    query, namespace, phase = (request.query.get_text(entry) for entry in ("q", "namespace", "phase"))
    jobs = [job_to_wire(request, entry) for entry in list_visible_objects(request, NOTEBOOK_JOB)]
    matching_jobs = [
        entry
        for entry in jobs
        if namespace in ("", entry["namespace"])
        and phase in ("", entry["phase"])
        and query.lower() in f"{entry['namespace']}/{entry['name']} {entry['notebook']}".lower()
    ]
    return build_page(request, matching_jobs, lambda entry: f"{entry['namespace']}/{entry['name']}")


async def get_job(request: RequestContext) -> JsonResponse:
    view = _load_run_view(request, None)
    details = {"runs": [_run_to_wire(attempt) for attempt in view.attempts], **_details_to_wire(view)}
    return select_fields(request, {**job_to_wire(request, request.subject), **details})


async def list_runs(request: RequestContext) -> JsonResponse:
    """List the runs, newest first."""
    view = _load_run_view(request, None)
    return build_page(request, view.attempts, lambda attempt: f"{10**9 - attempt.number:012}", to_wire=_run_to_wire)


async def get_run(request: RequestContext) -> JsonResponse:
    run_id = request.path_parameters["id"]
    if not (run_id.isascii() and run_id.isdecimal() and len(run_id) < 10):
        raise NotFoundOrForbidden
    view = _load_run_view(request, int(run_id))
    return select_fields(request, {**(_run_to_wire(view.attempt) if view.attempt else {}), **_details_to_wire(view)})


def _load_run_view(request: RequestContext, number: int | None) -> RunView:
    view = job_views.build_run_view(request.subject, number, utc_now())
    if view is None:
        raise NotFoundOrForbidden
    return view


def _details_to_wire(view: RunView) -> dict[str, Any]:
    """Details of one run besides its times; earlier runs have fewer."""
    return {
        "why": view.why,
        "told": [asdict(entry) for entry in view.cells],
        "notes": [asdict(entry) for entry in view.notes],
        "differences": [asdict(entry) for entry in view.differences],
        "setOff": [asdict(entry) for entry in view.set_off],
        "parameters": dict(view.parameters),
    }


async def run_again(request: RequestContext) -> JsonResponse:
    client = NotebookJobClient(build_impersonating_cluster(request, request.subject), request.service.cluster_name)
    return JsonResponse({"run": await client.run_again(request.subject)})


_PATH: Final = "/api/argosy/v1/notebooks"
_JOB_PATH: Final = f"{_PATH}/{{ns}}/{{name}}"
READ_PERMISSION: Final = RequiresPermission("applications", "get", resolve_notebook_job)
ROUTES = (
    Route(
        "GET",
        _PATH,
        FilteredList("applications", "get"),
        list_jobs,
        f"List notebook jobs. {ACCESS_NOTE}",
        query=(
            QueryParameter("q", "Only jobs whose name or notebook contains this text."),
            QueryParameter("namespace", "Only jobs in this namespace."),
            QueryParameter("phase", "Only jobs in this phase: Pending, Running, Succeeded or Failed."),
            *PAGING,
        ),
        response_schema=schema.build_object_schema(
            metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(JOB_SCHEMA)
        ),
        tag=TAG,
        operation_id="ListNotebooks",
    ),
    Route(
        "GET",
        _JOB_PATH,
        READ_PERMISSION,
        get_job,
        f"Read a notebook job and its last run. {ACCESS_NOTE}",
        query=(FIELDS,),
        response_schema=JOB_SCHEMA,
        tag=TAG,
        operation_id="GetNotebook",
    ),
    Route(
        "GET",
        f"{_JOB_PATH}/runs",
        READ_PERMISSION,
        list_runs,
        f"Runs of a notebook job, the newest first. {ACCESS_NOTE}",
        query=PAGING,
        response_schema=schema.build_object_schema(
            metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(RUN_SCHEMA)
        ),
        tag=TAG,
        operation_id="ListNotebookRuns",
    ),
    Route(
        "GET",
        f"{_JOB_PATH}/runs/{{id}}",
        READ_PERMISSION,
        get_run,
        f"One run of a notebook job. {ACCESS_NOTE}",
        query=(FIELDS,),
        response_schema=RUN_SCHEMA,
        tag=TAG,
        operation_id="GetNotebookRun",
    ),
    Route(
        "POST",
        f"{_JOB_PATH}/runs",
        RequiresPermission("applications", RUN_ACTION, resolve_notebook_job),
        run_again,
        "Run a notebook job again. Requires the action run on its Application.",
        response_schema=schema.build_object_schema("run", run=schema.STRING_SCHEMA),
        tag=TAG,
        operation_id="RunNotebook",
    ),
)
