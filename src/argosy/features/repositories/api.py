"""Argo CD API routes for repositories and credential templates, each for reading and for writing.

In: a request. Out: Repository and RepoCreds in Argo CD's shapes. Never: returns a secret;
writes an address other than the one the permission check covered.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from argosy.annotations import SECRET_TYPE
from argosy.errors import UserError
from argosy.features.repositories import service
from argosy.features.repositories.connection_test import BAD, State, States, state_of
from argosy.features.repositories.service import Shelf
from argosy.gitops.application.repository_url import is_same_repository
from argosy.gitops.application_client.declared_objects import Declared
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, FIELDS, chosen, part
from argosy.web.caller_clients import desk_of
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, Found, May, Parameter, Resolver, Route


class Kind(NamedTuple):
    """One of the four resources, with its API path and RBAC resource."""

    shelf: Shelf
    path: str
    resource: str
    words: str  # operation name pattern
    tag: str


READ: Final = Kind(
    service.REPOSITORIES, "repositories", "repositories", "RepositoryService_{}Repositor", "repositories"
)
WRITE: Final = Kind(
    service.WRITE_REPOSITORIES, "write-repositories", "write-repositories", "RepositoryService_{}WriteRepositor",
    "repositories",
)  # fmt: skip
READ_CREDS: Final = Kind(
    service.CREDENTIALS, "repocreds", "repositories", "RepoCredsService_{}RepositoryCredential", "repocreds"
)
WRITE_CREDS: Final = Kind(
    service.WRITE_CREDENTIALS, "write-repocreds", "write-repositories",
    "RepoCredsService_{}WriteRepositoryCredential", "repocreds",
)  # fmt: skip

PATIENCE: Final = 5.0  # seconds that a list waits for connection tests
STATE: Final = schema.fields(status=schema.TEXT, message=schema.TEXT, attemptedAt={"type": ["string", "null"]})
PROJECT: Final = Parameter("appProject", "The project that the repository is scoped to.")
UPSERT: Final = Parameter("upsert", "Update it if it exists and differs.", "boolean")
FORCE: Final = Parameter("forceRefresh", "Test the connection now instead of using a cached result.", "boolean")
_TYPES: Final[Mapping[type, schema.Schema]] = {str: schema.TEXT, bool: schema.FLAG, int: schema.COUNT}


def seen_schema(shelf: Shelf) -> schema.Schema:
    """Response schema: an allow-list of the fields that are not secret."""
    told = {each.wire: _TYPES[each.form] for each in shelf.fields if not each.is_secret}
    return schema.fields(**told, **({"connectionState": STATE} if shelf.address == "repo" else {}))


def sent_schema(shelf: Shelf) -> schema.Schema:
    return schema.fields(shelf.address, **{each.wire: _TYPES[each.form] for each in shelf.fields})


# -- resolvers ------------------------------------------------------------------------------------------------


async def there(asked: Asked, kind: Kind) -> Found | None:
    found = await service.find(desk_of(asked), kind.shelf, asked.values["repo"], asked.query.text("appProject"))
    return Found(found, service.thing_of(found)) if found else None


async def to_come(asked: Asked, kind: Kind) -> Found | None:
    values = service.read_values(await asked.mapping(), kind.shelf)
    return Found(values, _thing(values))


def _thing(values: Mapping[str, str]) -> str:
    return f"{values['project']}/{values['url']}" if values.get("project") else values["url"]


# -- handlers -----------------------------------------------------------------------------------------------------


async def listed(asked: Asked, kind: Kind) -> Json:
    wanted, project = asked.query.text("repo"), asked.query.text("appProject")
    found = [
        each
        for each in await service.all_on(desk_of(asked), kind.shelf)
        if (not wanted or is_same_repository(each.text("url"), wanted))
        and (not project or each.text("project") == project)
        and asked.may(kind.resource, "get", service.thing_of(each))
    ]
    items = await asyncio.gather(*(_told(asked, kind, each, PATIENCE) for each in found))
    return part(asked, items)


async def got(asked: Asked, kind: Kind) -> Json:
    return chosen(asked, await _told(asked, kind, asked.subject))


async def _told(asked: Asked, kind: Kind, declared: Declared, patience: float = 15.0) -> dict[str, Any]:
    document = service.document(declared, kind.shelf)
    if kind is not READ:
        return document
    mark = str(declared.manifest["metadata"].get("resourceVersion"))
    states = asked.site.part(States)
    rules = asked.site.lookout.rules
    is_forced = asked.query.flag("forceRefresh")
    state = await states.of(declared.values, mark, rules.repositories, is_forced=is_forced, patience=patience)
    return {**document, "connectionState": state.document()}


async def created(asked: Asked, kind: Kind) -> Json:
    values, is_upsert = asked.subject, asked.query.flag("upsert")
    desk = desk_of(asked)
    before = await service.find(desk, kind.shelf, values["url"], values.get("project", ""))
    if before is not None and is_upsert and service.thing_of(before) == asked.thing:
        asked.require(kind.resource, "update", service.thing_of(before))
    if kind is READ and not asked.query.flag("credsOnly"):
        await _check(asked, values)
    made = await service.add(desk, kind.shelf, values, replaces=is_upsert)
    return Json(service.document(made, kind.shelf))


async def updated(asked: Asked, kind: Kind) -> Json:
    """Check the permission for the current and the new object name; write the address of the path."""
    values = service.read_values(await asked.mapping(), kind.shelf)
    before: Declared = asked.subject
    if not is_same_repository(values["url"], asked.values["repo"]):
        raise UserError("the path and the body name different repositories; send the same", where=kind.shelf.address)
    if _thing(values) != asked.thing:
        asked.require(kind.resource, "update", _thing(values))
    made = await service.change(desk_of(asked), before, {**values, "url": before.text("url")})
    return Json(service.document(made, kind.shelf))


async def deleted(asked: Asked, kind: Kind) -> Json:
    await service.remove(desk_of(asked), asked.subject)
    return Json({})


async def validated(asked: Asked, kind: Kind) -> Json:
    """argo: credentials are query parameters; a JSON object is accepted, too."""
    await _check(asked, asked.subject)
    return Json({})


async def to_validate(asked: Asked, kind: Kind) -> Found | None:
    sent = await asked.document()
    given: dict[str, Any] = {**(sent if isinstance(sent, dict) else {}), "repo": asked.values["repo"]}
    for each in kind.shelf.fields:
        if each.wire in asked.query and each.wire != "repo":
            flags = each.form is bool
            given[each.wire] = asked.query.flag(each.wire) if flags else asked.query.text(each.wire)
    values = service.read_values(given, kind.shelf)
    return Found(values, _thing(values))


async def _check(asked: Asked, values: Mapping[str, str]) -> None:
    """argo: reject a repository that cannot be reached."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
    secret = {"metadata": {"name": "new", "labels": {SECRET_TYPE: "repository"}}, "data": data}
    state: State = await state_of(values, asked.site.lookout.rules.repositories, [secret])
    if state.status == BAD:
        raise UserError(f"Unable to connect to repository: {state.message}")


# -- routes ------------------------------------------------------------------------------------------------------


def _routes(kind: Kind) -> tuple[Route, ...]:
    shelf, path, end = kind.shelf, f"/api/v1/{kind.path}", ("y", "ies") if kind.shelf.address == "repo" else ("s", "s")
    one: Resolver = partial(there, kind=kind)
    new: Resolver = partial(to_come, kind=kind)
    seen, what = seen_schema(shelf), f"{'a write ' if 'write' in shelf.type else 'a '}{shelf.word}"
    force = (FORCE,) if kind is READ else ()
    made = (
        Route(
            "GET", path, Filtered(kind.resource, "get"), partial(listed, kind=kind), f"List {shelf.word} entries.",
            query=(Parameter("repo", "Only the one with this address."), PROJECT, *force, *ARGO_PAGING),
            gives=schema.fields(metadata=schema.ANY, items=schema.many(seen)), tag=kind.tag,
            operation=kind.words.format("List") + end[1],
        ),
        Route(
            "POST", path, May(kind.resource, "create", new), partial(created, kind=kind),
            f"Create {what}. With `upsert`, an existing one is updated, which needs the permission to update it.",
            query=(UPSERT, *((Parameter("credsOnly", "Skip connection test.", "boolean"),) if kind is READ else ())),
            takes=sent_schema(shelf), gives=seen, tag=kind.tag, operation=kind.words.format("Create") + end[0],
        ),
        Route(
            "PUT", f"{path}/{{repo}}", May(kind.resource, "update", one), partial(updated, kind=kind),
            f"Update {what}. Secrets that are not sent are kept, unless the proxy or the host verification changes.",
            query=(PROJECT,), takes=sent_schema(shelf), gives=seen, tag=kind.tag,
            operation=kind.words.format("Update") + end[0],
        ),
        Route(
            "DELETE", f"{path}/{{repo}}", May(kind.resource, "delete", one), partial(deleted, kind=kind),
            f"Delete {what}.", query=(PROJECT,), gives=schema.NOTHING, tag=kind.tag,
            operation=kind.words.format("Delete") + end[0],
        ),
    )  # fmt: skip
    return made


def _routes_of_one(kind: Kind) -> tuple[Route, ...]:
    shelf, path = kind.shelf, f"/api/v1/{kind.path}/{{repo}}"
    what, is_read = f"{'' if kind is READ else 'write '}repository", kind is READ
    credentials = tuple(
        Parameter(each.wire, "As in the request body.", "boolean" if each.form is bool else "string")
        for each in shelf.fields
        if each.wire != "repo"
    )
    return (
        Route(
            "GET", path, May(kind.resource, "get", partial(there, kind=kind)), partial(got, kind=kind),
            f"Read a {what}.", query=(PROJECT, *((FORCE,) if is_read else ()), FIELDS), gives=seen_schema(shelf),
            tag=kind.tag, operation="RepositoryService_Get" if is_read else "RepositoryService_GetWrite",
        ),
        Route(
            "POST", f"{path}/validate", May(kind.resource, "create", partial(to_validate, kind=kind)),
            partial(validated, kind=kind), f"Test the connection to a {what} with these credentials.",
            query=credentials, takes={}, gives=schema.NOTHING, tag=kind.tag,
            operation="RepositoryService_Validate" + ("Access" if is_read else "WriteAccess"),
        ),
    )  # fmt: skip


ROUTES = (
    *_routes(READ),
    *_routes_of_one(READ),
    *_routes(WRITE),
    *_routes_of_one(WRITE),
    *_routes(READ_CREDS),
    *_routes(WRITE_CREDS),
)
