"""API to list, get, create and delete ApplicationSets; generators are not run here.

In: a request. Out: ApplicationSets in Argo CD's format. Never: one that the caller may not see; creates Applications.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.features.applications.streams.api import SETS, owner
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.schema.selectors import labels as read_labels
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body
from argosy.web.api.not_implemented import not_built
from argosy.web.api.paging import ARGO_PAGING, FIELDS, chosen, part
from argosy.web.object_lookup import application_name, is_at_home
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, Found, May, Parameter, Route

EVENT: Final = GroupKind("", "Event")
TAG: Final = "applicationsets"
SET: Final = schema.fields(metadata=schema.METADATA, spec=schema.ANY, status=schema.ANY)
MARKS: Final = ("labels", "annotations", "finalizers")
MAX_ATTEMPTS: Final = 8  # write conflicts with a controller


def _thing(asked: Asked, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return application_name(asked, owner(manifest), str(metadata["namespace"]), str(metadata["name"]))


async def one(asked: Asked) -> Found | None:
    namespace = asked.query.text("appsetNamespace") or asked.site.desk.control
    try:
        found = await asked.site.desk.cluster.get(ResourceKey(*SETS, namespace, asked.values["name"]))
    except ClusterError as error:
        if error.code in (400, 404, 422):
            return None
        raise
    return Found(found, _thing(asked, found)) if found and _is_at_home(asked, found) else None


def _is_at_home(asked: Asked, manifest: Manifest) -> bool:
    """argo: A project lists its permitted source namespaces."""
    return is_at_home(asked, {"metadata": manifest["metadata"], "spec": {"project": owner(manifest)}})


async def new(asked: Asked) -> Found | None:
    body = Body(await asked.mapping())
    metadata = body.body("metadata") or Body({}, "metadata")
    spec = body.body("spec")
    name, control = metadata.text("name"), asked.site.desk.control
    if not name or spec is None:
        raise UserError("missing metadata.name or spec; send a complete ApplicationSet", where="body")
    if metadata.text("namespace") not in ("", control):
        raise UserError(f"ApplicationSets must be in namespace {control}; remove the field", where="metadata.namespace")
    marks = {each: metadata.values[each] for each in MARKS if metadata.values.get(each)}
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": SETS.kind,
        "metadata": {"name": name, "namespace": control, **marks},
        "spec": dict(spec.values),
    }
    return Found(manifest, _thing(asked, manifest))


async def listed(asked: Asked) -> Json:
    query = asked.query
    projects, selector = {*query.all("projects")} - {""}, read_labels(query.text("selector"))
    try:
        every = (await asked.site.desk.cluster.list(SETS, namespace=query.text("appsetNamespace"))).items
    except ClusterError as error:
        if error.code != 404:  # the cluster does not have the CRD
            raise
        every = []
    found = [
        each
        for each in every
        if (not projects or owner(each) in projects)
        and selector.matches(each["metadata"].get("labels"))
        and _is_at_home(asked, each)
        and asked.may("applicationsets", "get", _thing(asked, each))
    ]
    return part(asked, sorted(found, key=lambda each: str(each["metadata"]["name"])))


async def got(asked: Asked) -> Json:
    return chosen(asked, asked.subject)


def _joined(before: Any, sent: Any) -> Any:
    """argo: Merge labels and annotations; replace finalizers."""
    return {**before, **sent} if isinstance(before, dict) and isinstance(sent, dict) else sent


async def created(asked: Asked) -> Json:
    manifest, cluster = asked.subject, asked.site.desk.cluster
    if asked.query.flag("dryRun"):
        return Json(await cluster.create(manifest, dry_run=True))
    for _ in range(MAX_ATTEMPTS):
        try:
            return Json(await _create_or_update(asked, manifest))
        except Conflict:  # a controller may have written conditions
            continue
    raise UserError(f"gave up after {MAX_ATTEMPTS} write conflicts; try again")


async def _create_or_update(asked: Asked, manifest: Manifest) -> Manifest:
    """Raise Conflict if it was changed or created concurrently."""
    cluster = asked.site.desk.cluster
    key = ResourceKey(*SETS, manifest["metadata"]["namespace"], manifest["metadata"]["name"])
    before = await cluster.get(key)
    if before is None:
        return await cluster.create(manifest)
    asked.require("applicationsets", "get", _thing(asked, before))
    marks = {name: manifest["metadata"][name] for name in MARKS if manifest["metadata"].get(name)}
    metadata = {**before["metadata"], **{name: _joined(before["metadata"].get(name), marks[name]) for name in marks}}
    if before.get("spec") == manifest["spec"] and metadata == before["metadata"]:
        return before
    if not asked.query.flag("upsert"):
        raise UserError("existing ApplicationSet spec is different; use upsert flag to force update")
    for each in (before, manifest):
        asked.require("applicationsets", "update", _thing(asked, each))
    return await cluster.replace({**before, "metadata": metadata, "spec": manifest["spec"]})


async def deleted(asked: Asked) -> Json:
    metadata = asked.subject["metadata"]
    key = ResourceKey(*SETS, metadata["namespace"], metadata["name"])
    await asked.site.desk.cluster.delete(key, uid=metadata.get("uid"))
    return Json({})


async def generated(asked: Asked) -> Json:
    return not_built("generating ApplicationSets is not supported", "create the Applications directly")


async def tree(asked: Asked) -> Json:
    """argo: The Applications that it owns."""
    uid = str(asked.subject["metadata"].get("uid") or "")
    owned = asked.site.lookout.cache.owned(uid) if uid else []
    return Json({"nodes": [_node(each) for each in owned if _is_seen(asked, each)]})


def _is_seen(asked: Asked, manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    thing = application_name(asked, owner(manifest), str(metadata["namespace"]), str(metadata["name"]))
    return manifest.get("kind") == "Application" and asked.may("applications", "get", thing)


def _node(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest["metadata"]
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    return {
        "group": group,
        "version": version,
        "kind": manifest["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
    }


async def events(asked: Asked) -> Json:
    metadata = asked.subject["metadata"]
    found = (await asked.site.desk.cluster.list(EVENT, namespace=str(metadata["namespace"]))).items
    about = [each for each in found if (each.get("involvedObject") or {}).get("uid") == metadata.get("uid")]
    return part(asked, about)


_PATH: Final = "/api/v1/applicationsets"
PLACE: Final = Parameter("appsetNamespace", "Its namespace, if it is not that of the installation.")
GET: Final = May("applicationsets", "get", one)
ROUTES = (
    Route(
        "GET", _PATH, Filtered("applicationsets", "get"), listed, "List ApplicationSets.",
        query=(
            Parameter("projects", "Only ApplicationSets of these projects.", "array"),
            Parameter("selector", "Only ApplicationSets that match this label selector."), PLACE, *ARGO_PAGING,
        ),
        gives=schema.fields(metadata=schema.ANY, items=schema.many(SET)), tag=TAG,
        operation="ApplicationSetService_List",
    ),
    Route(
        "POST", _PATH, May("applicationsets", "create", new), created,
        "Create an ApplicationSet. With `upsert`, update an existing one, which needs the permission to update it.",
        query=(
            Parameter("upsert", "Update it if it exists and differs.", "boolean"),
            Parameter("dryRun", "Only validate it.", "boolean"),
        ),
        takes=schema.fields("metadata", "spec", metadata=schema.METADATA, spec=schema.ANY), gives=SET, tag=TAG,
        operation="ApplicationSetService_Create",
    ),
    Route(
        "POST", f"{_PATH}/generate", May("applicationsets", "create", new), generated, "Not supported.",
        takes=schema.ANY, tag=TAG, operation="ApplicationSetService_Generate",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}", GET, got, "Get an ApplicationSet.", query=(PLACE, FIELDS), gives=SET, tag=TAG,
        operation="ApplicationSetService_Get",
    ),
    Route(
        "DELETE", f"{_PATH}/{{name}}", May("applicationsets", "delete", one), deleted, "Delete an ApplicationSet.",
        query=(PLACE,), gives=schema.NOTHING, tag=TAG, operation="ApplicationSetService_Delete",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/resource-tree", GET, tree, "List the visible Applications that it owns.",
        query=(PLACE,), gives=schema.TREE, tag=TAG, operation="ApplicationSetService_ResourceTree",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/events", GET, events, "List Events of an ApplicationSet.", query=(PLACE,),
        gives=schema.EVENTS, tag=TAG, operation="ApplicationSetService_ListResourceEvents",
    ),
)  # fmt: skip
