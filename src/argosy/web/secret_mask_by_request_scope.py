"""Redaction of one request: the mask for its texts, and placeholders for secret values that it contains.

In: a request. Out: its mask; the request without secret values. Never: resolves the scope of a mask only once, because
Secrets, projects and rendered manifests change while a stream is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from argosy.kube.well_known_kinds import APPLICATION
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.observability.redaction.secret_origin_and_scope import INSTALLATION, SecretScope
from argosy.web import authorization
from argosy.web.request import RequestContext
from argosy.web.request_input_echo import conceal_request, list_sent_texts
from argosy.web.route import Route

TENANT_RESOURCES: Final = ("applications", "applicationsets", "projects", "logs")  # resources that tenants write
OBJECT_ROUTE_SUFFIXES: Final = ("/logs", "/resource")  # routes that return one object of an Application


def find_request_mask(request: RequestContext, *, quotes_request: bool = False) -> SecretMask:
    """Return the mask of the Application that a request is about, else that of the installation.

    `quotes_request`: the texts quote the request body of a change, such as an error message.
    """
    subject_request = request.memory.page or request
    # the scope of the original request, without placeholders, resolved on each use
    find_scope = subject_request.memory.find_scope
    if find_scope is None:
        find_scope = subject_request.memory.find_scope = partial(_build_scope, subject_request)
    return request.masks.for_scope(find_scope(), (lambda: list_sent_texts(subject_request)) if quotes_request else None)


def build_text_mask(request: RequestContext) -> Callable[[str], str]:
    """Return a function that redacts the texts of a long-running request with the current Secrets."""
    return lambda text: find_request_mask(request).mask_text(text)


def _build_scope(request: RequestContext) -> SecretScope:
    project, _, application_path = request.rbac_object.partition("/")
    namespace, _, name = application_path.rpartition("/")
    scope = request.masks.get_scope(namespace or request.service.control_namespace, name) if name else INSTALLATION
    if scope is INSTALLATION:
        scope = SecretScope(project, has_guessable=request.rbac_resource not in TENANT_RESOURCES)
    if request.path.endswith(OBJECT_ROUTE_SUFFIXES) and name and request.query.get("namespace"):
        # the route returns only objects of the Application; those of a cluster-scoped owner can be in any namespace
        scope = replace(scope, namespaces=scope.namespaces | {request.query["namespace"]})
    subject = request.subject
    metadata = subject.get("metadata") if isinstance(subject, Mapping) else None
    is_foreign = isinstance(subject, Mapping) and not str(subject.get("apiVersion")).startswith(f"{APPLICATION[0]}/")
    if isinstance(metadata, Mapping) and metadata.get("uid") and is_foreign:
        # a live object that the caller may see
        scope = replace(scope, namespaces=scope.namespaces | {str(metadata.get("namespace") or "")})
    return scope


async def conceal_secrets(route: Route, request: RequestContext) -> RequestContext:
    """Replace Secret values in a request by placeholders; the response restores the text that was sent."""
    concealed, echo = conceal_request(request, find_request_mask(request).find_values)
    if not echo and not echo.is_decoy:
        return request
    request.memory.echo = echo
    if echo.is_decoy:  # a correct guess costs this check, so a wrong one must, too
        decoy = replace(request, subject=None, rbac_object="", memory=replace(request.memory))
        await authorization.authorize(route, decoy)
        return request
    return await authorization.authorize(route, replace(concealed, subject=None, rbac_object=""))
