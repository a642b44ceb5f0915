"""API for the manifests, managed resources, resource tree, diffs and revisions of an Application.

In: a request. Out: Argo CD's format, with JSON in strings where Argo CD has that. Never: a value of a Secret.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from argosy.annotations import COMPARE_OPTIONS
from argosy.errors import UserError
from argosy.features.applications.read.api import APPLICATION_PARAMETERS
from argosy.features.applications.read.server_side_diff_choice import read_server_side_diff_choice
from argosy.features.applications.read.tree_and_diff_response import (
    desired_state_to_wire,
    diffs_to_wire,
    hosts_to_wire,
    node_to_wire,
)
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.application_client.sync_operation_builder import assign_refs
from argosy.gitops.live.resource_tree import ResourceNode, build_node
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check
from argosy.gitops.source.git.refs import COMMIT_ID, SHORT_COMMIT_ID, TAGS_PREFIX
from argosy.gitops.status.resources import list_resource_keys
from argosy.kube.client import Catalog
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.well_known_kinds import NODE, POD, SECRET
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import rename_flags_to_body_fields
from argosy.web.caller_application_service import build_reader
from argosy.web.error_details import report_without_code
from argosy.web.request import QueryParameters, RequestContext, quote_input
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, Route

MAX_TAGS_AGE_SECONDS: Final = 60.0  # of the cached tags of a repository


async def get_manifests(request: RequestContext) -> JsonResponse:
    app, reader = request.subject, build_reader(request)
    refs = _read_refs(app, request.query)
    with report_without_code():
        desired_state = await reader.render_desired_state(app, refs)
    return JsonResponse(desired_state_to_wire(app, desired_state, reader.reconciler_settings.diff.masked_annotations))


def _read_refs(app: Application, query: QueryParameters) -> tuple[str, ...]:
    revisions = [text for text in query.get_all("revisions") if text]
    if revisions:
        positions = [_read_position(text) for text in query.get_all("sourcePositions")]
        if not positions and len(revisions) == len(app.sources):
            return tuple(revisions)
        with rename_flags_to_body_fields():
            return assign_refs(app, revisions, positions)
    return (query.get_text("revision"),) if query.get_text("revision") else ()


def _read_position(text: str) -> int:
    return QueryParameters([("sourcePositions", text)]).get_int("sourcePositions", 0)


async def list_managed_resources(request: RequestContext) -> JsonResponse:
    app, reader = request.subject, build_reader(request)
    return JsonResponse(
        {"items": _list_diffs(reader, await reader.compare(app), app, read_object_selector(request.query))}
    )


async def get_server_side_diff(request: RequestContext) -> JsonResponse:
    """argo: Diff with a server-side dry run. Only manifests from Git are compared.

    The argocd CLI sends the manifests that it read here, and expects an answer for them only.
    """
    choice = read_server_side_diff_choice(request.query)
    app, reader = request.subject, build_reader(request)
    options = ",".join(filter(None, (app.annotations.get(COMPARE_OPTIONS, ""), "ServerSideDiff=true")))
    server_side_app = replace(app, annotations={**app.annotations, COMPARE_OPTIONS: options})
    app_state = await reader.compare(server_side_app)
    if _is_incomplete_for_secrets_only(app_state):
        # argo: the CLI sends Secrets masked, so values that the API server rejects do not matter.
        app_state = await reader.compare(app)
    items = _list_diffs(reader, app_state, app, ObjectSelector())
    if choice is not None:
        items = choice.select(items)
    return JsonResponse({"items": items, "modified": any(item.get("modified") for item in items)})


def _is_incomplete_for_secrets_only(app_state: AppState) -> bool:
    failed_kinds = {
        pair.key.group_kind
        for pair in app_state.comparison.pairs
        if pair.desired is not None and pair.live is not None and pair.differs and pair.predicted is None
    }
    return not app_state.is_complete and failed_kinds == {SECRET}


def _list_diffs(
    reader: ApplicationReader, app_state: AppState, app: Application, choice: ObjectSelector
) -> list[dict[str, Any]]:
    if not app_state.is_complete:
        message = next(
            (condition.message for condition in app_state.conditions if condition.type.is_error),
            "the comparison failed",
        )
        raise UserError(f"{message}; see more: argosy app get {app.name}", where=app.name)
    return diffs_to_wire(app_state.comparison, reader.reconciler_settings.diff.masked_annotations, choice.matches)


def read_object_selector(query: QueryParameters, name: str = "name") -> ObjectSelector:
    return ObjectSelector(
        query.get_text("group"), query.get_text("kind"), query.get_text("namespace"), query.get_text(name)
    )


async def get_resource_tree(request: RequestContext) -> JsonResponse:
    return JsonResponse(await build_tree_response(build_reader(request), request.subject))


async def build_tree_response(reader: ApplicationReader, app: Application) -> dict[str, Any]:
    """Build the tree for both the response and the stream.

    argo: Always the whole tree: `argocd app get -o tree` sends the name of the Application as that of an object. The
    namespace that a sync created is not part of it.
    """
    project = reader.get_project(app)
    is_allowed = build_permission_check(app, project, reader.reconciler_settings, await reader.list_kinds())
    managed_keys = set(list_resource_keys(app.status))
    all_nodes = [*_list_missing_nodes(reader, app, await reader.list_kinds()), *await reader.build_tree(app)]
    nodes = [node for node in all_nodes if is_allowed(node.key) and (node.parents or node.key in managed_keys)]
    orphans = [key for key in await reader.list_orphans(app) if is_allowed(key)] if project.orphans else []
    pods = [manifest for node in nodes if node.key.group_kind == POD and (manifest := reader.cache.get(node.key))]
    orphan_nodes = [build_node(reader.cache, manifest) for key in orphans if (manifest := reader.cache.get(key))]
    return {
        "nodes": [_node_to_wire(reader, node) for node in nodes],
        "orphanedNodes": [_node_to_wire(reader, node) for node in orphan_nodes],
        "hosts": hosts_to_wire(reader.cache.list(NODE), pods),
    }


def _list_missing_nodes(reader: ApplicationReader, app: Application, kinds: Catalog) -> list[ResourceNode]:
    """argo: The tree includes desired objects that do not exist."""
    missing_keys = [row.key for row in list_rows(app) if not row.hook and row.status == "OutOfSync"]
    return [
        ResourceNode(
            key,
            kinds[key.group_kind].version if key.group_kind in kinds else "",
            health=Assessment(HealthStatus.MISSING),
        )
        for key in missing_keys
        if reader.cache.get(key) is None and key not in reader.unreadable
    ]


def _node_to_wire(reader: ApplicationReader, node: ResourceNode) -> dict[str, Any]:
    return node_to_wire(node, reader.cache.get(node.key))


# -- revisions -----------------------------------------------------------------------------------------------------


async def get_revision_metadata(request: RequestContext) -> JsonResponse:
    app, reader, revision = request.subject, build_reader(request), request.path_parameters["revision"]
    index = request.query.get_int("sourceIndex", 0)
    if index >= len(app.sources):
        raise UserError(
            f"source index out of range: the Application has {len(app.sources)} sources; the first is 0",
            where="sourceIndex",
        )
    source = app.sources[index]
    if source.chart:
        raise UserError(
            f"source {source.chart} is a Helm chart and has no commits; see its versions in the chart repository"
        )
    if not COMMIT_ID.fullmatch(revision) and not SHORT_COMMIT_ID.fullmatch(revision):
        raise UserError(
            f"{quote_input(revision, 80)} is not a commit; send at least its first seven digits", where="revision"
        )
    mirror = reader.reconciler_settings.repositories.mirror(source.repo_url, project=app.project)
    git_commit = await mirror.load_commit(revision.lower(), max_age=MAX_TAGS_AGE_SECONDS)
    refs = await mirror.list_refs(max_age=MAX_TAGS_AGE_SECONDS)
    matching_refs = (
        name
        for name, commit_id in refs.commits.items()
        if commit_id.startswith(revision.lower()) and name.startswith(TAGS_PREFIX)
    )
    tags = sorted(name.removeprefix(TAGS_PREFIX) for name in matching_refs)
    response = {
        "author": git_commit.author,
        "date": format_timestamp(git_commit.authored_at),
        "message": git_commit.message,
    }
    return JsonResponse({**response, **({"tags": tags} if tags else {})})


async def refuse_chart_details(request: RequestContext) -> JsonResponse:
    source = next((candidate for candidate in request.subject.sources if candidate.chart), None)
    if source is None:
        raise UserError("the Application has no Helm chart source; see its commits: revisions/REVISION/metadata")
    raise UserError(f"metadata of chart {source.chart} is not supported; see it in the chart repository")


OBJECT_FILTER_PARAMETERS: Final = tuple(
    QueryParameter(name, f"Only objects of this {word}.")
    for name, word in (("namespace", "namespace"), ("name", "name"), ("version", "version"), ("group", "API group"),
                       ("kind", "kind"))
)  # fmt: skip
READ_PERMISSION = RequiresPermission("applications", "get", resolve_application)
APPLICATION_PATH = "/api/v1/applications/{name}"
ROUTES = (
    Route(
        "GET",
        f"{APPLICATION_PATH}/manifests",
        READ_PERMISSION,
        get_manifests,
        "Get the desired manifests of an Application.",
        query=(
            QueryParameter("revision", "A branch, tag or commit instead of the target revision."),
            QueryParameter("revisions", "Revisions of several sources.", "array"),
            QueryParameter("sourcePositions", "Positions of the sources of these revisions; the first is 1.", "array"),
            QueryParameter("noCache", "Accepted and ignored: the render cache is keyed by content.", "boolean"),
            *APPLICATION_PARAMETERS,
        ),
        response_schema=schema.MANIFESTS,
        tag="applications",
        operation_id="ApplicationService_GetManifests",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/managed-resources",
        READ_PERMISSION,
        list_managed_resources,
        "List the managed objects of an Application, desired and live.",
        query=(*OBJECT_FILTER_PARAMETERS, *APPLICATION_PARAMETERS),
        response_schema=schema.DIFFS,
        tag="applications",
        operation_id="ApplicationService_ManagedResources",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/resource-tree",
        READ_PERMISSION,
        get_resource_tree,
        "Get the managed objects of an Application and their children.",
        query=(*OBJECT_FILTER_PARAMETERS, *APPLICATION_PARAMETERS),
        response_schema=schema.TREE,
        tag="applications",
        operation_id="ApplicationService_ResourceTree",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/server-side-diff",
        READ_PERMISSION,
        get_server_side_diff,
        "Get differences as computed by a server-side apply dry run.",
        query=(
            QueryParameter("targetManifests", "Must be those of managed-resources: only Git is compared.", "array"),
            QueryParameter("liveResources", "Only these objects: JSON with group, kind, namespace and name.", "array"),
            *APPLICATION_PARAMETERS,
        ),
        response_schema=schema.DIFFS,
        tag="applications",
        operation_id="ApplicationService_ServerSideDiff",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/revisions/{{revision}}/metadata",
        READ_PERMISSION,
        get_revision_metadata,
        "Get author, date and message of a commit.",
        query=(
            QueryParameter("sourceIndex", "Index of the source; the first is 0.", "integer"),
            QueryParameter("versionId", "Accepted and ignored.", "integer"),
            *APPLICATION_PARAMETERS,
        ),
        response_schema=schema.COMMIT,
        tag="applications",
        operation_id="ApplicationService_RevisionMetadata",
    ),
    *(
        Route(
            "GET",
            f"{APPLICATION_PATH}/revisions/{{revision}}/{what}",
            READ_PERMISSION,
            refuse_chart_details,
            "Refused: chart metadata is not supported.",
            query=(
                QueryParameter("sourceIndex", "Ignored.", "integer"),
                QueryParameter("versionId", "Ignored.", "integer"),
                *APPLICATION_PARAMETERS,
            ),
            response_schema=schema.NOTHING,
            tag="applications",
            operation_id=f"ApplicationService_{word}",
        )
        for what, word in (("chartdetails", "RevisionChartDetails"), ("ocimetadata", "GetOCIMetadata"))
    ),
)
