"""API for the manifests, managed resources, resource tree, diffs and revisions of an Application.

In: a request. Out: Argo CD's format, with JSON in strings where Argo CD has that. Never: a value of a Secret.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from argosy.annotations import COMPARE_OPTIONS
from argosy.errors import UserError
from argosy.features.applications.read.api import PLACE
from argosy.features.applications.read.tree_response import diffs_wire, hosts_wire, manifest_texts, node_wire
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.resource_actions import Choice
from argosy.gitops.application_client.summary import rows
from argosy.gitops.application_client.sync_requests import positioned
from argosy.gitops.live.resource_tree import POD, Node, node_of
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.permissions import permission
from argosy.gitops.source.git.refs import COMMIT, SHORT_COMMIT, TAGS
from argosy.kube.client import Catalog
from argosy.kube.names import GroupKind
from argosy.kube.objects.timestamps import written
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import as_fields
from argosy.web.caller_clients import reader_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked, Query, quoted
from argosy.web.responses import Json
from argosy.web.route import May, Parameter, Route, SignedIn

NODE: Final = GroupKind("", "Node")
TAGS_AGE: Final = 60.0  # of the cached tags of a repository


async def manifests(asked: Asked) -> Json:
    app, reader = asked.subject, reader_of(asked)
    found = await reader.assemble(app, _refs(app, asked.query))
    answer = {
        "manifests": manifest_texts(found.desired, reader.rules.compare.masked_annotations),
        "namespace": app.destination.namespace,
        "server": app.destination.known.server,
        "revision": found.revisions[0] if found.revisions else "",
        "sourceType": found.tools[0] if found.tools else "",
    }
    return Json(answer)


def _refs(app: Application, query: Query) -> tuple[str, ...]:
    many = [each for each in query.all("revisions") if each]
    if many:
        positions = [_number(each) for each in query.all("sourcePositions")]
        if not positions and len(many) == len(app.sources):
            return tuple(many)
        with as_fields():
            return positioned(app, many, positions)
    return (query.text("revision"),) if query.text("revision") else ()


def _number(text: str) -> int:
    return Query([("sourcePositions", text)]).number("sourcePositions", 0)


async def managed(asked: Asked) -> Json:
    app, reader = asked.subject, reader_of(asked)
    return Json({"items": _diffs(reader, await reader.look(app), app, choice_of(asked.query))})


async def server_side(asked: Asked) -> Json:
    """argo: Diff with a server-side dry run. Manifests in the request are refused: only Git defines desired state."""
    if asked.query.all("targetManifests") or asked.query.all("liveResources"):
        told = "only manifests from Git are compared; remove targetManifests and liveResources"
        raise UserError(told, where="targetManifests")
    app, reader = asked.subject, reader_of(asked)
    options = ",".join(filter(None, (app.annotations.get(COMPARE_OPTIONS, ""), "ServerSideDiff=true")))
    asking = replace(app, annotations={**app.annotations, COMPARE_OPTIONS: options})
    items = _diffs(reader, await reader.look(asking), app, Choice())
    return Json({"items": items, "modified": any(each.get("modified") for each in items)})


def _diffs(reader: Reader, look: Look, app: Application, choice: Choice) -> list[dict[str, Any]]:
    if not look.is_whole:
        said = next((each.message for each in look.conditions if each.type.is_error), "the comparison failed")
        raise UserError(f"{said}; see more: argosy app get {app.name}", where=app.name)
    return diffs_wire(look.comparison, reader.rules.compare.masked_annotations, choice.fits)


def choice_of(query: Query, name: str = "name") -> Choice:
    return Choice(query.text("group"), query.text("kind"), query.text("namespace"), query.text(name))


async def resource_tree(asked: Asked) -> Json:
    return Json(await tree_of(reader_of(asked), asked.subject, choice_of(asked.query)))


async def tree_of(reader: Reader, app: Application, choice: Choice | None = None) -> dict[str, Any]:
    """Build the tree for both the response and the stream."""
    project = reader.project(app)
    allowed = permission(app, project, reader.rules, await reader.kinds())
    fits = (choice or Choice()).fits
    every = [*_missing(reader, app, await reader.kinds()), *await reader.tree(app)]
    nodes = [node for node in every if allowed(node.key) and fits(node.key)]
    orphans = [key for key in await reader.orphans(app) if allowed(key) and fits(key)] if project.orphans else []
    pods = [found for node in nodes if node.key.group_kind == POD and (found := reader.cache.get(node.key))]
    lost = [node_of(reader.cache, found) for key in orphans if (found := reader.cache.get(key))]
    return {
        "nodes": [_node(reader, node) for node in nodes],
        "orphanedNodes": [_node(reader, node) for node in lost],
        "hosts": hosts_wire(reader.cache.list(NODE), pods),
    }


def _missing(reader: Reader, app: Application, kinds: Catalog) -> list[Node]:
    """argo: The tree includes desired objects that do not exist."""
    absent = [row.key for row in rows(app) if not row.hook and row.status == "OutOfSync"]
    return [
        Node(key, kinds[key.group_kind].version if key.group_kind in kinds else "", health=Assessment(Health.MISSING))
        for key in absent
        if reader.cache.get(key) is None and key not in reader.denied
    ]


def _node(reader: Reader, node: Node) -> dict[str, Any]:
    return node_wire(node, reader.cache.get(node.key))


# -- revisions -----------------------------------------------------------------------------------------------------


async def commit(asked: Asked) -> Json:
    app, reader, revision = asked.subject, reader_of(asked), asked.values["revision"]
    place = asked.query.number("sourceIndex", 0)
    if place >= len(app.sources):
        raise UserError(
            f"source index out of range: the Application has {len(app.sources)} sources; the first is 0",
            where="sourceIndex",
        )
    source = app.sources[place]
    if source.chart:
        raise UserError(
            f"source {source.chart} is a Helm chart and has no commits; see its versions in the chart repository"
        )
    if not COMMIT.fullmatch(revision) and not SHORT_COMMIT.fullmatch(revision):
        raise UserError(
            f"{quoted(revision, 80)} is not a commit; send at least its first seven digits", where="revision"
        )
    mirror = reader.rules.repositories.mirror(source.repo_url, project=app.project)
    found = await mirror.commit(revision.lower(), max_age=TAGS_AGE)
    refs = await mirror.refs(max_age=TAGS_AGE)
    mine = (name for name, at in refs.commits.items() if at.startswith(revision.lower()) and name.startswith(TAGS))
    tags = sorted(name.removeprefix(TAGS) for name in mine)
    answer = {"author": found.author, "date": written(found.at), "message": found.message}
    return Json({**answer, **({"tags": tags} if tags else {})})


async def chart(asked: Asked) -> Json:
    source = next((each for each in asked.subject.sources if each.chart), None)
    if source is None:
        raise UserError("the Application has no Helm chart source; see its commits: revisions/REVISION/metadata")
    raise UserError(f"metadata of chart {source.chart} is not supported; see it in the chart repository")


async def with_files(asked: Asked) -> Json:
    told = "manifests are rendered only from Git; push a branch and request it with ?revision=, or: argosy render DIR"
    raise UserError(f"rendering uploaded files is not supported; {told}")


FILTER: Final = tuple(
    Parameter(name, f"Only objects of this {word}.")
    for name, word in (("namespace", "namespace"), ("name", "name"), ("version", "version"), ("group", "API group"),
                       ("kind", "kind"))
)  # fmt: skip
OF = May("applications", "get", application)
AT = "/api/v1/applications/{name}"
ROUTES = (
    Route(
        "GET", f"{AT}/manifests", OF, manifests, "Get the desired manifests of an Application.",
        query=(
            Parameter("revision", "A branch, tag or commit instead of the target revision."),
            Parameter("revisions", "Revisions of several sources.", "array"),
            Parameter("sourcePositions", "Positions of the sources of these revisions; the first is 1.", "array"),
            Parameter("noCache", "Accepted and ignored: the render cache is keyed by content.", "boolean"),
            *PLACE,
        ),
        gives=schema.MANIFESTS, tag="applications", operation="ApplicationService_GetManifests",
    ),
    Route(
        "GET", f"{AT}/managed-resources", OF, managed, "List the managed objects of an Application, desired and live.",
        query=(*FILTER, *PLACE), gives=schema.DIFFS, tag="applications",
        operation="ApplicationService_ManagedResources",
    ),
    Route(
        "GET", f"{AT}/resource-tree", OF, resource_tree,
        "Get the managed objects of an Application and their children.",
        query=(*FILTER, *PLACE), gives=schema.TREE, tag="applications", operation="ApplicationService_ResourceTree",
    ),
    Route(
        "GET", f"{AT}/server-side-diff", OF, server_side, "Get differences as computed by a server-side apply dry run.",
        query=(
            Parameter("targetManifests", "Refused: only manifests from Git are compared.", "array"),
            Parameter("liveResources", "Refused.", "array"), *PLACE,
        ),
        gives=schema.DIFFS, tag="applications", operation="ApplicationService_ServerSideDiff",
    ),
    Route(
        "GET", f"{AT}/revisions/{{revision}}/metadata", OF, commit, "Get author, date and message of a commit.",
        query=(
            Parameter("sourceIndex", "Index of the source; the first is 0.", "integer"),
            Parameter("versionId", "Accepted and ignored.", "integer"), *PLACE,
        ),
        gives=schema.COMMIT, tag="applications", operation="ApplicationService_RevisionMetadata",
    ),
    *(
        Route(
            "GET", f"{AT}/revisions/{{revision}}/{what}", OF, chart, "Refused: chart metadata is not supported.",
            query=(
                Parameter("sourceIndex", "Ignored.", "integer"), Parameter("versionId", "Ignored.", "integer"), *PLACE,
            ),
            gives=schema.NOTHING, tag="applications", operation=f"ApplicationService_{word}",
        )
        for what, word in (("chartdetails", "RevisionChartDetails"), ("ocimetadata", "GetOCIMetadata"))
    ),
    Route(
        "POST", "/api/v1/applications/manifestsWithFiles", SignedIn(), with_files,
        "Refused: uploaded files are not rendered.",
        takes=schema.ANY, gives=schema.NOTHING, is_change=False, tag="applications",
        operation="ApplicationService_GetManifestsWithFiles",
    ),
)  # fmt: skip
