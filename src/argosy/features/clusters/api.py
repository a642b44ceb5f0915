"""Argo CD API routes for clusters.

In: a request. Out: Clusters in Argo CD's shape. Never: returns credentials; writes an
address other than the one the permission check covered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.clusters import service
from argosy.features.clusters.add import rotate
from argosy.features.repositories.api import STATE
from argosy.gitops.application.cluster_address import parse_cluster_address
from argosy.gitops.application_client.declared_objects import Declared
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body
from argosy.web.api.paging import ARGO_PAGING, FIELDS, chosen, part
from argosy.web.caller_clients import desk_of
from argosy.web.owned_objects import delivered_to
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, Found, May, Parameter, Route

TAG: Final = "clusters"
MARKS: Final = {"type": "object", "additionalProperties": schema.TEXT}
# An allow-list: no other field of the config is returned.
CONFIG: Final = schema.fields(
    username=schema.TEXT,
    tlsClientConfig=schema.fields(insecure=schema.FLAG, serverName=schema.TEXT),
    awsAuthConfig=schema.fields(clusterName=schema.TEXT, roleARN=schema.TEXT),
    execProviderConfig=schema.fields(command=schema.TEXT, apiVersion=schema.TEXT),
)
CLUSTER: Final = schema.fields(
    server=schema.TEXT, name=schema.TEXT, config=CONFIG, connectionState=STATE, serverVersion=schema.TEXT,
    namespaces=schema.many(schema.TEXT), clusterResources=schema.FLAG, project=schema.TEXT, shard=schema.COUNT,
    refreshRequestedAt=schema.TEXT, labels=MARKS, annotations=MARKS,
    info=schema.fields(
        applicationsCount=schema.COUNT, cacheInfo=schema.ANY, connectionState=STATE, serverVersion=schema.TEXT
    ),
)  # fmt: skip
TO_SEND: Final = schema.fields(
    server=schema.TEXT, name=schema.TEXT, config=schema.ANY, namespaces=schema.many(schema.TEXT),
    clusterResources=schema.FLAG, project=schema.TEXT, shard={"type": ["string", "integer"]}, labels=MARKS,
    annotations=MARKS,
)  # fmt: skip


async def cluster(asked: Asked) -> Found | None:
    """Find the cluster by its address, or by its name with `?id.type=name`."""
    is_name = asked.query.text("id.type") in ("name", "name_escaped")
    found = await service.find(desk_of(asked), asked.values["id"], is_name=is_name)
    return Found(found, service.thing_of(found)) if found else None


async def new_cluster(asked: Asked) -> Found | None:
    sent = await asked.mapping()
    return Found(sent, _thing(sent))


def _thing(sent: Mapping[str, Any]) -> str:
    values = service.read_values(sent)
    return f"{values['project']}/{values['server']}" if values["project"] else values["server"]


async def listed(asked: Asked) -> Json:
    server, name = parse_cluster_address(asked.query.text("server")), asked.query.text("name")
    found = [
        each
        for each in await service.all_clusters(desk_of(asked))
        if server in ("", service.server_of(each))
        and name in ("", each.text("name"))
        and asked.may("clusters", "get", service.thing_of(each))
    ]
    return part(asked, list(await asyncio.gather(*(_told(asked, each) for each in found))))


async def got(asked: Asked) -> Json:
    return chosen(asked, await _told(asked, asked.subject))


async def _told(asked: Asked, declared: Declared) -> dict[str, Any]:
    state, version = await asked.site.part(service.States).of(desk_of(asked), declared)
    count = delivered_to(asked)[service.server_of(declared)]
    return service.document(declared, state, version, count, asked.site.lookout.rules.compare.masked_annotations)


async def created(asked: Asked) -> Json:
    desk, is_upsert = desk_of(asked), asked.query.flag("upsert")
    before = await service.find(desk, service.read_values(asked.subject)["server"])
    if before is not None:  # an error must not reveal a cluster that the caller may not see
        asked.require("clusters", "update" if is_upsert else "get", service.thing_of(before))
    return Json(await _told(asked, await service.add(desk, asked.subject, replaces=is_upsert)))


async def updated(asked: Asked) -> Json:
    """Check the permission for both the current and the new object name."""
    sent, before = await asked.mapping(), asked.subject
    server = service.server_of(before)
    if parse_cluster_address(Body(sent).text("server")) not in ("", server):
        raise UserError("differs from the server in the path; send the same", where="server")
    only = asked.query.all("updatedFields")
    if not only or "project" in only:
        thing = _thing({**sent, "server": server})
        if thing != asked.thing:
            asked.require("clusters", "update", thing)
    return Json(await _told(asked, await service.change(desk_of(asked), before, sent, only)))


async def deleted(asked: Asked) -> Json:
    await service.remove(desk_of(asked), asked.subject)
    return Json({})


async def forgotten(asked: Asked) -> Json:
    desk = desk_of(asked)
    await service.forget(desk, asked.subject)
    again = await service.find(desk, service.server_of(asked.subject))
    return Json(await _told(asked, again or asked.subject))


async def rotated(asked: Asked) -> Json:
    desk = desk_of(asked)
    if desk.opener is None:
        raise UserError("this server cannot connect to other clusters; use: argosy cluster rotate", where=asked.thing)
    await rotate(desk, asked.subject, desk.opener)
    return Json({})


_PATH: Final = "/api/v1/clusters"
ID: Final = Parameter("id.type", "`name`: the id in the path is the cluster's name, not its address.")
ROUTES = (
    Route(
        "GET", _PATH, Filtered("clusters", "get"), listed, "List clusters.",
        query=(
            Parameter("server", "Only the cluster with this address."),
            Parameter("name", "Only the cluster with this name."), ID,
            Parameter("id.value", "Accepted and ignored."), *ARGO_PAGING,
        ),
        gives=schema.fields(metadata=schema.ANY, items=schema.many(CLUSTER)), tag=TAG, operation="ClusterService_List",
    ),
    Route(
        "POST", _PATH, May("clusters", "create", new_cluster), created,
        "Create a cluster. With `upsert`, an existing cluster is updated, which needs the permission to update it.",
        query=(Parameter("upsert", "Update the cluster if it exists and differs.", "boolean"),),
        takes={**TO_SEND, "required": ["server"]}, gives=CLUSTER, tag=TAG, operation="ClusterService_Create",
    ),
    Route(
        "GET", f"{_PATH}/{{id}}", May("clusters", "get", cluster), got, "Read a cluster.", query=(ID, FIELDS),
        gives=CLUSTER, tag=TAG, operation="ClusterService_Get",
    ),
    Route(
        "PUT", f"{_PATH}/{{id}}", May("clusters", "update", cluster), updated,
        "Update a cluster. Credentials that are not sent are kept, unless TLS verification would be weakened.",
        query=(ID, Parameter("updatedFields", "Update only these fields.", "array")),
        takes=TO_SEND, gives=CLUSTER, tag=TAG, operation="ClusterService_Update",
    ),
    Route(
        "DELETE", f"{_PATH}/{{id}}", May("clusters", "delete", cluster), deleted, "Delete a cluster.", query=(ID,),
        gives=schema.NOTHING, tag=TAG, operation="ClusterService_Delete",
    ),
    Route(
        "POST", f"{_PATH}/{{id}}/invalidate-cache", May("clusters", "update", cluster), forgotten,
        "Invalidate the cache of a cluster.", query=(ID,),
        gives=CLUSTER, tag=TAG, operation="ClusterService_InvalidateCache",
    ),
    Route(
        "POST", f"{_PATH}/{{id}}/rotate-auth", May("clusters", "update", cluster), rotated,
        "Create a new token for the cluster's service account and revoke the old one.", query=(ID,),
        gives=schema.NOTHING, tag=TAG, operation="ClusterService_RotateAuth",
    ),
)  # fmt: skip
