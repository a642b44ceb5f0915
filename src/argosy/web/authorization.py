"""Authorization: checks the permission that a route requires. "Not found" and "forbidden" are the same response.

In: a request and its route. Out: the request with its subject, or NotFoundOrForbidden. Never: reveals which of the two
to a caller who may not see the object.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from argosy.web.request import NotFoundOrForbidden, PermissionMissing, RequestContext
from argosy.web.route import FilteredList, Public, RequiresPermission, Route, SignedIn


class NotAuthenticated(Exception):
    """The request requires authentication."""


async def authorize(route: Route, request: RequestContext) -> RequestContext:
    match route.access:
        case Public():
            return request
        case SignedIn() | FilteredList():
            return _require_caller(request)
        case RequiresPermission(resource, action, resolver):
            _require_caller(request)
            resolved = await resolver(request)
            # checked for missing objects too, so that timing does not reveal whether an object exists
            action = (resolved.action if resolved else "") or action
            rbac_object = resolved.rbac_object if resolved else ""
            is_allowed = request.is_allowed(resource, action, rbac_object)
            is_visible = request.is_allowed(resource, "get", rbac_object)
            if resolved is not None and not is_allowed and (resolved.is_from_request_only or is_visible):
                raise PermissionMissing(resource, action, rbac_object, request.caller.name)
            if resolved is None or not is_allowed:
                raise NotFoundOrForbidden
            if resolved.error:
                raise resolved.error
            return replace(
                request,
                subject=resolved.build_subject() if resolved.build_subject else resolved.subject,
                rbac_object=resolved.rbac_object,
            )


def _require_caller(request: RequestContext) -> RequestContext:
    if request.caller.is_nobody:
        raise NotAuthenticated
    return request


async def find_revocation(route: Route, request: RequestContext) -> Exception | None:
    """Check an open stream again, against the current state of its subject; return the error that must end it."""
    if isinstance(route.access, Public):
        return None
    if not request.authenticator.is_still_valid(request.caller):
        return NotAuthenticated()
    with suppress(Exception):  # deleted, forbidden or unreadable by now
        if (await authorize(route, request)).rbac_object == request.rbac_object:
            return None
    return NotFoundOrForbidden()
