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
from argosy.features.repositories.connection_test import FAILED, ConnectionState, RepositoryStateCache, test_connection
from argosy.features.repositories.service import RepositorySecretType
from argosy.gitops.application.repository_url_parser import is_same_repository
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, FIELDS, build_argo_page, select_fields
from argosy.web.caller_application_service import build_service
from argosy.web.error_details import UncodedError
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, ResolvedObject, Resolver, Route


class RepositoryResource(NamedTuple):
    """One of the four resources, with its API path and RBAC resource."""

    secret_type: RepositorySecretType
    path: str
    resource: str
    operation_pattern: str  # operation name pattern
    tag: str

    @property
    def noun(self) -> str:
        """Noun of one object, with its article."""
        return f"{'a write ' if 'write' in self.secret_type.type else 'a '}{self.secret_type.noun}"

    def build_operation_id(self, verb: str, *, is_plural: bool = False) -> str:
        singular, plural = ("y", "ies") if self.secret_type.address_field == "repo" else ("s", "s")
        return self.operation_pattern.format(verb) + (plural if is_plural else singular)


READ_REPOSITORIES: Final = RepositoryResource(
    service.REPOSITORIES, "repositories", "repositories", "RepositoryService_{}Repositor", "repositories"
)
WRITE_REPOSITORIES: Final = RepositoryResource(
    service.WRITE_REPOSITORIES, "write-repositories", "write-repositories", "RepositoryService_{}WriteRepositor",
    "repositories",
)  # fmt: skip
READ_CREDENTIALS: Final = RepositoryResource(
    service.CREDENTIALS, "repocreds", "repositories", "RepoCredsService_{}RepositoryCredential", "repocreds"
)
WRITE_CREDENTIALS: Final = RepositoryResource(
    service.WRITE_CREDENTIALS, "write-repocreds", "write-repositories",
    "RepoCredsService_{}WriteRepositoryCredential", "repocreds",
)  # fmt: skip

LIST_WAIT_SECONDS: Final = 5.0  # seconds that a list waits for connection tests
STATE_SCHEMA: Final = schema.build_object_schema(
    status=schema.STRING_SCHEMA, message=schema.STRING_SCHEMA, attemptedAt={"type": ["string", "null"]}
)
PROJECT_PARAMETER: Final = QueryParameter("appProject", "The project that the repository is scoped to.")
UPSERT_PARAMETER: Final = QueryParameter("upsert", "Update it if it exists and differs.", "boolean")
FORCE_REFRESH_PARAMETER: Final = QueryParameter(
    "forceRefresh", "Test the connection now instead of using a cached result.", "boolean"
)
_FIELD_SCHEMAS: Final[Mapping[type, schema.Schema]] = {
    str: schema.STRING_SCHEMA,
    bool: schema.BOOLEAN_SCHEMA,
    int: schema.INTEGER_SCHEMA,
}
_REPOSITORY_SCHEMAS: Final = {"connectionState": STATE_SCHEMA, "inheritedCreds": schema.BOOLEAN_SCHEMA}


def response_schema(secret_type: RepositorySecretType) -> schema.Schema:
    """Response schema: an allow-list of the fields that are not secret."""
    fields = {field.wire_name: _FIELD_SCHEMAS[field.value_type] for field in secret_type.fields if not field.is_secret}
    return schema.build_object_schema(**fields, **(_REPOSITORY_SCHEMAS if secret_type.address_field == "repo" else {}))


def request_schema(secret_type: RepositorySecretType) -> schema.Schema:
    return schema.build_object_schema(
        secret_type.address_field, **{field.wire_name: _FIELD_SCHEMAS[field.value_type] for field in secret_type.fields}
    )


# -- resolvers ------------------------------------------------------------------------------------------------


async def find_repository(request: RequestContext, kind: RepositoryResource) -> ResolvedObject | None:
    declared = await service.find_declared(
        build_service(request), kind.secret_type, request.path_parameters["repo"], request.query.get_text("appProject")
    )
    return ResolvedObject(declared, service.rbac_name(declared)) if declared else None


async def read_new_repository(request: RequestContext, kind: RepositoryResource) -> ResolvedObject | None:
    values = service.read_values(await request.read_json_object(), kind.secret_type)
    return ResolvedObject(values, _build_rbac_name(values), is_from_request_only=True)


def _build_rbac_name(values: Mapping[str, str]) -> str:
    return f"{values['project']}/{values['url']}" if values.get("project") else values["url"]


# -- handlers -----------------------------------------------------------------------------------------------------


async def list_repositories(
    request: RequestContext, kind: RepositoryResource, states: RepositoryStateCache
) -> JsonResponse:
    url, project = request.query.get_text("repo"), request.query.get_text("appProject")
    repositories = [
        repository
        for repository in await service.list_declared(build_service(request), kind.secret_type)
        if (not url or is_same_repository(repository.get_stripped("url"), url))
        and (not project or repository.get_stripped("project") == project)
        and request.is_allowed(kind.resource, "get", service.rbac_name(repository))
    ]
    items = await asyncio.gather(
        *(_describe_repository(request, kind, repository, states, LIST_WAIT_SECONDS) for repository in repositories)
    )
    return build_argo_page(request, items)


async def get_repository(
    request: RequestContext, kind: RepositoryResource, states: RepositoryStateCache
) -> JsonResponse:
    return select_fields(request, await _describe_repository(request, kind, request.subject, states))


async def _describe_repository(
    request: RequestContext,
    kind: RepositoryResource,
    declared: DeclaredSecret,
    states: RepositoryStateCache,
    wait_seconds: float = 15.0,
) -> dict[str, Any]:
    document = service.repository_to_wire(declared, kind.secret_type)
    if kind is not READ_REPOSITORIES:
        return document
    version = str(declared.manifest["metadata"].get("resourceVersion"))
    settings = request.cluster_view.rules
    is_forced = request.query.get_bool("forceRefresh")
    state = await states.get_state(
        declared.values, version, settings.repositories, is_forced=is_forced, wait_seconds=wait_seconds
    )
    if service.has_inherited_credentials(declared, settings.repositories.credentials):
        document["inheritedCreds"] = True  # argo
    return {**document, "connectionState": state.to_wire()}


async def create_repository(request: RequestContext, kind: RepositoryResource) -> JsonResponse:
    values, is_upsert = request.subject, request.query.get_bool("upsert")
    app_service = build_service(request)
    existing = await service.find_declared(app_service, kind.secret_type, values["url"], values.get("project", ""))
    if existing is not None and is_upsert and service.rbac_name(existing) == request.rbac_object:
        request.require_permission(kind.resource, "update", service.rbac_name(existing))
    if kind is READ_REPOSITORIES and not request.query.get_bool("credsOnly"):
        await _check_connection(request, values)
    declared = await service.add_declared(app_service, kind.secret_type, values, is_upsert=is_upsert)
    return JsonResponse(service.repository_to_wire(declared, kind.secret_type))


async def update_repository(request: RequestContext, kind: RepositoryResource) -> JsonResponse:
    """Check the permission for the current and the new object name; write the address of the path."""
    values = service.read_values(await request.read_json_object(), kind.secret_type)
    existing: DeclaredSecret = request.subject
    if not is_same_repository(values["url"], request.path_parameters["repo"]):
        raise UserError(
            "the path and the body name different repositories; send the same", where=kind.secret_type.address_field
        )
    if _build_rbac_name(values) != request.rbac_object:
        request.require_permission(kind.resource, "update", _build_rbac_name(values))
    declared = await service.update_declared(
        build_service(request), existing, {**values, "url": existing.get_stripped("url")}
    )
    return JsonResponse(service.repository_to_wire(declared, kind.secret_type))


async def delete_repository(request: RequestContext, kind: RepositoryResource) -> JsonResponse:
    await service.remove_declared(build_service(request), request.subject)
    return JsonResponse({})


async def validate_access(request: RequestContext, kind: RepositoryResource) -> JsonResponse:
    """argo: credentials are query parameters; a JSON object is accepted, too."""
    await _check_connection(request, request.subject)
    return JsonResponse({})


async def read_repository_to_validate(request: RequestContext, kind: RepositoryResource) -> ResolvedObject | None:
    body = await request.read_json()
    fields: dict[str, Any] = {**(body if isinstance(body, dict) else {}), "repo": request.path_parameters["repo"]}
    for field in kind.secret_type.fields:
        if field.wire_name in request.query and field.wire_name != "repo":
            is_bool = field.value_type is bool
            fields[field.wire_name] = (
                request.query.get_bool(field.wire_name) if is_bool else request.query.get_text(field.wire_name)
            )
    values = service.read_values(fields, kind.secret_type)
    return ResolvedObject(values, _build_rbac_name(values), is_from_request_only=True)


async def _check_connection(request: RequestContext, values: Mapping[str, str]) -> None:
    """argo: reject a repository that cannot be reached."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
    secret = {"metadata": {"name": "new", "labels": {SECRET_TYPE: "repository"}}, "data": data}
    state: ConnectionState = await test_connection(values, request.cluster_view.rules.repositories, [secret])
    if state.status == FAILED:
        raise UncodedError(f"Unable to connect to repository: {state.message}")


# -- routes ------------------------------------------------------------------------------------------------------


def _build_collection_routes(kind: RepositoryResource, states: RepositoryStateCache) -> tuple[Route, ...]:
    """Build the routes that list and create."""
    secret_type, path, response = kind.secret_type, f"/api/v1/{kind.path}", response_schema(kind.secret_type)
    resolve_new: Resolver = partial(read_new_repository, kind=kind)
    force_parameters = (FORCE_REFRESH_PARAMETER,) if kind is READ_REPOSITORIES else ()
    skip_test = QueryParameter("credsOnly", "Skip connection test.", "boolean")
    return (
        Route(
            "GET",
            path,
            FilteredList(kind.resource, "get"),
            partial(list_repositories, kind=kind, states=states),
            f"List {secret_type.noun} entries.",
            query=(
                QueryParameter("repo", "Only the one with this address."),
                PROJECT_PARAMETER,
                *force_parameters,
                *ARGO_PAGING,
            ),
            response_schema=schema.build_object_schema(
                metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(response)
            ),
            tag=kind.tag,
            operation_id=kind.build_operation_id("List", is_plural=True),
        ),
        Route(
            "POST",
            path,
            RequiresPermission(kind.resource, "create", resolve_new),
            partial(create_repository, kind=kind),
            f"Create {kind.noun}. With `upsert`, an existing one is updated, which needs the permission to update it.",
            query=(UPSERT_PARAMETER, *((skip_test,) if kind is READ_REPOSITORIES else ())),
            request_schema=request_schema(secret_type),
            response_schema=response,
            tag=kind.tag,
            operation_id=kind.build_operation_id("Create"),
        ),
    )


def _build_change_routes(kind: RepositoryResource) -> tuple[Route, ...]:
    """Build the routes that update and delete."""
    path = f"/api/v1/{kind.path}/{{repo}}"
    resolve_existing: Resolver = partial(find_repository, kind=kind)
    return (
        Route(
            "PUT",
            path,
            RequiresPermission(kind.resource, "update", resolve_existing),
            partial(update_repository, kind=kind),
            f"Update {kind.noun}. "
            "Secrets that are not sent are kept, unless the proxy or the host verification changes.",
            query=(PROJECT_PARAMETER,),
            request_schema=request_schema(kind.secret_type),
            response_schema=response_schema(kind.secret_type),
            tag=kind.tag,
            operation_id=kind.build_operation_id("Update"),
        ),
        Route(
            "DELETE",
            path,
            RequiresPermission(kind.resource, "delete", resolve_existing),
            partial(delete_repository, kind=kind),
            f"Delete {kind.noun}.",
            query=(PROJECT_PARAMETER,),
            response_schema=schema.NOTHING,
            tag=kind.tag,
            operation_id=kind.build_operation_id("Delete"),
        ),
    )


def _build_single_routes(kind: RepositoryResource, states: RepositoryStateCache) -> tuple[Route, ...]:
    secret_type, path = kind.secret_type, f"/api/v1/{kind.path}/{{repo}}"
    noun, is_read = f"{'' if kind is READ_REPOSITORIES else 'write '}repository", kind is READ_REPOSITORIES
    credentials = tuple(
        QueryParameter(field.wire_name, "As in the request body.", "boolean" if field.value_type is bool else "string")
        for field in secret_type.fields
        if field.wire_name != "repo"
    )
    return (
        Route(
            "GET",
            path,
            RequiresPermission(kind.resource, "get", partial(find_repository, kind=kind)),
            partial(get_repository, kind=kind, states=states),
            f"Read a {noun}.",
            query=(PROJECT_PARAMETER, *((FORCE_REFRESH_PARAMETER,) if is_read else ()), FIELDS),
            response_schema=response_schema(secret_type),
            tag=kind.tag,
            operation_id="RepositoryService_Get" if is_read else "RepositoryService_GetWrite",
        ),
        Route(
            "POST",
            f"{path}/validate",
            RequiresPermission(kind.resource, "create", partial(read_repository_to_validate, kind=kind)),
            partial(validate_access, kind=kind),
            f"Test the connection to a {noun} with these credentials.",
            query=credentials,
            request_schema={},
            response_schema=schema.NOTHING,
            tag=kind.tag,
            operation_id="RepositoryService_Validate" + ("Access" if is_read else "WriteAccess"),
        ),
    )


def build_routes(states: RepositoryStateCache) -> tuple[Route, ...]:
    return (
        *_build_collection_routes(READ_REPOSITORIES, states),
        *_build_change_routes(READ_REPOSITORIES),
        *_build_single_routes(READ_REPOSITORIES, states),
        *_build_collection_routes(WRITE_REPOSITORIES, states),
        *_build_change_routes(WRITE_REPOSITORIES),
        *_build_single_routes(WRITE_REPOSITORIES, states),
        *_build_collection_routes(READ_CREDENTIALS, states),
        *_build_change_routes(READ_CREDENTIALS),
        *_build_collection_routes(WRITE_CREDENTIALS, states),
        *_build_change_routes(WRITE_CREDENTIALS),
    )
