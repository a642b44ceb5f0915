"""Find the Application that a request with a body refers to; path, query and body must agree.

In: a request. Out: Found. Never: authorizes one Application and lets the request write another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from argosy.errors import UserError
from argosy.web.api.body_fields import BodyReader, check_same_name
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.route import ResolvedObject


async def find_application_in_body(request: RequestContext) -> ResolvedObject | None:
    """argo: The body may also contain `name`, `appNamespace` and `project`."""
    body = BodyReader(await request.read_json_object())
    check_same_name(request.path_parameters["name"], body.get_text("name"))
    return await resolve_application(
        _with_merged_query(request, body.get_text("appNamespace"), body.get_text("project"))
    )


async def find_application_in_manifest(request: RequestContext) -> ResolvedObject | None:
    """Find the Application by the metadata of the manifest in the body."""
    metadata = BodyReader(await request.read_json_object()).get_body("metadata") or BodyReader({})
    check_same_name(request.path_parameters["name"], metadata.get_text("name"))
    return await resolve_application(_with_merged_query(request, metadata.get_text("namespace"), ""))


def build_object_action_resolver(verb: str) -> Callable[[RequestContext], Awaitable[ResolvedObject | None]]:
    """argo: Changing an object of an Application needs the action `update/<group>/<kind>/<namespace>/<name>`."""

    async def resolve(request: RequestContext) -> ResolvedObject | None:
        lookup = await resolve_application(request)
        query = request.query
        parts = (
            query.get_text("group"),
            query.get_text("kind"),
            query.get_text("namespace"),
            query.get_text("resourceName"),
        )
        return None if lookup is None else replace(lookup, action="/".join((verb, *parts)))

    return resolve


def _with_merged_query(request: RequestContext, namespace: str, project: str) -> RequestContext:
    query = request.query
    pairs = []
    for name, in_body in (("appNamespace", namespace), ("project", project)):
        in_query = query.get_text(name)
        if in_query and in_body and in_query != in_body:
            raise UserError(f"the query has {in_query!r} and the body has {in_body!r}; send the same value", where=name)
        if in_query or in_body:
            pairs.append((name, in_query or in_body))
    return replace(request, query=QueryParameters(pairs))
