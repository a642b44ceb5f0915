"""API for the manifests of files that a client sends: `argocd app diff --local --server-side-generate`.

In: a query, and a gzip-compressed tar archive in pieces, a JSON document per line. Out: the manifests that the
Application would have with these files. Never: writes a file; contacts a repository; keeps what was sent.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson

from argosy.errors import UserError
from argosy.features.applications.read.tree_and_diff_response import desired_state_to_wire
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.reconciler.desired_state_values import DesiredStateRequest
from argosy.gitops.source.archive_tree import MAX_ARCHIVE_BYTES, read_archive
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader
from argosy.web.caller_application_service import build_reader
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.request_limits import ConcurrencyLimits
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import JsonResponse
from argosy.web.route import RequiresPermission, ResolvedObject, Route

MAX_BODY_BYTES: Final = 24 << 20  # an archive in base64, with JSON around each piece
MAX_QUERY_BYTES: Final = 64 << 10  # the first line, which is read before the permission is checked
_FIRST: Final = "the first document needs the field query; the others need chunk, with a piece of the archive"


async def find_application_of_files(request: RequestContext) -> ResolvedObject | None:
    """Find the Application that the first line names. The files are read if the caller may get it."""
    query = _read_query(await request.read_first_line(MAX_QUERY_BYTES))
    fields = [(name, query.get_text(name)) for name in ("appNamespace", "project")]
    parameters = QueryParameters([(name, text) for name, text in fields if text])
    return await resolve_application(
        replace(request, path_parameters={"name": query.get_text("name")}, query=parameters)
    )


async def get_manifests_of_files(limits: ConcurrencyLimits, request: RequestContext) -> JsonResponse:
    app = request.subject
    with limits.limit_upload(request.caller.name):  # until the response, because the files are kept in memory
        files = await asyncio.to_thread(_read_files, await request.read_raw_body())
        reader, sources = build_reader(request).without_render_cache(), app.sources[:1]  # argo: the first source only
        load_request = DesiredStateRequest(sources, tuple(source.ref for source in sources), sent_files=files)
        desired_state = await reader.build_desired_state(replace(app, sources=sources), load_request)
    return JsonResponse(desired_state_to_wire(app, desired_state, reader.reconciler_settings.diff.masked_annotations))


def _read_files(body: bytes) -> Checkout:
    checksum = _read_query(body.partition(b"\n")[0]).get_text("checksum")
    archive = bytearray()
    for piece in _read_pieces(body):
        archive += piece
        if len(archive) > MAX_ARCHIVE_BYTES:
            raise UserError(f"file exceeded max size of {MAX_ARCHIVE_BYTES} bytes")  # argo: the same message
    actual_checksum = hashlib.sha256(archive).hexdigest()
    if actual_checksum != checksum:
        raise UserError(f"file checksum validation error: calc {actual_checksum} sent another")  # argo
    return Checkout(read_archive(bytes(archive)), actual_checksum)


def _read_query(line: bytes) -> BodyReader:
    document = _read_document(line)
    query = document.get("query")
    if not isinstance(query, dict):
        raise UserError(_FIRST, where="query")
    reader = BodyReader(query)
    if not reader.get_text("name"):
        raise UserError("invalid request: application name is missing")  # argo: the same message
    return reader


def _read_pieces(body: bytes) -> Iterator[bytes]:
    for line in body.partition(b"\n")[2].split(b"\n"):
        if not line.strip():
            continue
        chunk = _read_document(line).get("chunk")
        piece = chunk.get("chunk", "") if isinstance(chunk, dict) else None
        if not isinstance(piece, str):
            raise UserError(_FIRST, where="chunk")
        try:
            yield base64.b64decode(piece, validate=True)
        except (binascii.Error, ValueError):
            raise UserError("is not base64", where="chunk") from None


def _read_document(line: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise UserError("send a JSON object per line", where="body")
    return document


def build_routes(limits: ConcurrencyLimits) -> tuple[Route, ...]:
    return (
        Route(
            "POST",
            "/api/v1/applications/manifestsWithFiles",
            RequiresPermission("applications", "get", find_application_of_files),
            partial(get_manifests_of_files, limits),
            "Render files that are sent, as if they were in the Application's first source.",
            request_schema=schema.OBJECT_SCHEMA,
            response_schema=schema.MANIFESTS,
            is_change=False,
            max_body_bytes=MAX_BODY_BYTES,
            tag="applications",
            operation_id="ApplicationService_GetManifestsWithFiles",
        ),
    )
