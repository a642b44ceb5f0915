"""Errors of a Kubernetes API server (message, reason, details) as ClusterErrors, and their Status objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.errors import ArgosyError, ClusterError, Conflict, Forbidden, Gone, Invalid, StorageFull, UserError
from argosy.kube.objects import Manifest
from argosy.kube.schema.field_error import Fault, FaultKind
from argosy.kube.schema.resources import Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def about(resource: Resource, name: str, *, kind: str = "") -> dict[str, Any]:
    """The `details` of a Status: name, group and kind of the object."""
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def not_found(resource: Resource, name: str) -> ClusterError:
    message = f'{resource.group_resource} "{name}" not found'
    return ClusterError(message, code=404, reason="NotFound", details=about(resource, name))


def no_such_resource() -> ClusterError:
    message = "the server could not find the requested resource"
    return ClusterError(message, code=404, reason="NotFound", details={})


def already_exists(resource: Resource, name: str, *, dying: bool = False) -> Conflict:
    message = f'{resource.group_resource} "{name}" already exists'
    if dying:
        message = f"object is being deleted: {message}"
    return Conflict(message, reason="AlreadyExists", details=about(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED, *, kind: str = "") -> Conflict:
    which = kind or resource.group_resource
    message = f'Operation cannot be fulfilled on {which} "{name}": {why}'
    return Conflict(message, reason="Conflict", details=about(resource, name, kind=kind))


def invalid(resource: Resource, name: str, faults: Sequence[Fault], *, kind: str = "") -> Invalid:
    """`kind` is the resource's plural if the storage layer refuses, not the kind's own validation."""
    named = kind or resource.kind
    which = f"{named}.{resource.group}" if resource.group else named
    return Invalid(
        _invalid_text(which, name, faults), reason="Invalid", details=_causes(about(resource, name, kind=named), faults)
    )


def invalid_options(kind: str, *faults: Fault) -> Invalid:
    """Invalid query parameters: the Status is about the options object."""
    details = _causes({"group": "meta.k8s.io", "kind": kind}, faults)
    return Invalid(_invalid_text(f"{kind}.meta.k8s.io", "", faults), reason="Invalid", details=details)


def _invalid_text(which: str, name: str, faults: Sequence[Fault]) -> str:
    texts = list(dict.fromkeys(str(fault) for fault in faults))
    shown = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return f'{which} "{name}" is invalid: {shown}'


def _causes(details: dict[str, Any], faults: Sequence[Fault]) -> dict[str, Any]:
    causes = [{"reason": str(fault.kind), "message": fault.message, "field": fault.field} for fault in faults]
    return {**details, "causes": causes}


def unprocessable_patch() -> Invalid:
    return Invalid("the server rejected our request due to an error in our request", reason="Invalid", details={})


def unreadable_patch(shown: str, why: str) -> Invalid:
    """k8s: the message contains the whole patch or patched object if that cannot be decoded as its kind."""
    problem = Fault("patch", FaultKind.INVALID, f"Invalid value: {json.dumps(shown, ensure_ascii=False)}: {why}")
    return Invalid(_invalid_text("", "", [problem]), reason="Invalid", details=_causes({}, [problem]))


def bad_request(message: str) -> ClusterError:
    return ClusterError(message, code=400, reason="BadRequest")


def internal(message: str) -> ClusterError:
    return ClusterError(message, code=500)


def method_not_allowed() -> ClusterError:
    message = "the server does not allow this method on the requested resource"
    return ClusterError(message, code=405, reason="MethodNotAllowed", details={})


def terminating_definition(resource: Resource) -> ClusterError:
    message = "create not allowed while custom resource definition is terminating"
    return ClusterError(message, code=405, reason="MethodNotAllowed", details=about(resource, ""))


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Mapping[str, str]] = ()) -> Forbidden:
    details = about(resource, name)
    if causes:
        details["causes"] = [dict(cause) for cause in causes]
    shown = f' "{name}"' if name else ""
    return Forbidden(f"{resource.group_resource}{shown} is forbidden: {why}", reason="Forbidden", details=details)


def denied(resource: Resource, name: str, who: str, why: str) -> Forbidden:
    """k8s: the error of a validating webhook."""
    message = f'admission webhook "{who}" denied the request: {why}'
    return Forbidden(message, reason="Forbidden", details=about(resource, name))


def namespace_terminating(resource: Resource, name: str, namespace: str) -> Forbidden:
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(resource, name, why, [cause])


def unauthorized() -> ClusterError:
    return ClusterError("Unauthorized", code=401, reason="Unauthorized")


def expired(message: str) -> Gone:
    return Gone(message, reason="Expired")


def too_large_version(asked: int, current: int) -> ClusterError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ClusterError(message, code=504, reason="Timeout", details=details)


def too_many_requests() -> ClusterError:
    message = "Too many requests, please try again later."
    return ClusterError(message, code=429, reason="TooManyRequests", details={"retryAfterSeconds": 1})


def too_many_watches(user: str, most: int, *, retry_seconds: int) -> ClusterError:
    message = (
        f'Too many requests, please try again later: user "{user}" has {most} open watches, which is the limit; '
        "raise it with argosy sandbox start --max-watches-per-user"
    )
    return ClusterError(message, code=429, reason="TooManyRequests", details={"retryAfterSeconds": retry_seconds})


def too_large_body(limit: int) -> ClusterError:
    return ClusterError(f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge")


def too_large_to_store() -> ClusterError:
    """k8s: the error of etcd, which the server passes on unchanged."""
    return internal("etcdserver: request is too large")


def too_large(message: str) -> ClusterError:
    return ClusterError(message, code=413, reason="RequestEntityTooLarge")


def unsupported_media(message: str, *, details: Mapping[str, Any] | None = None) -> ClusterError:
    return ClusterError(message, code=415, reason="UnsupportedMediaType", details=details)


def not_acceptable(message: str, *, details: Mapping[str, Any] | None = None) -> ClusterError:
    return ClusterError(message, code=406, reason="NotAcceptable", details=details)


def status_of(error: ArgosyError) -> Manifest:
    """The Status object that a client sees."""
    if isinstance(error, UserError):
        error = bad_request(str(error))
    if isinstance(error, StorageFull):
        error = ClusterError(str(error), code=507, reason="InsufficientStorage")
    if not isinstance(error, ClusterError):
        error = ClusterError(str(error), code=503, reason="ServiceUnavailable")
    metadata: dict[str, Any] = {}
    details = dict(error.details) if error.details is not None else None
    if details is not None and "continue" in details:  # the new continue token of an expired list
        metadata["continue"] = details.pop("continue")
        details = details or None
    status: Manifest = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
    status["message"] = error.message
    if error.reason:
        status["reason"] = error.reason
    if details is not None:
        status["details"] = details
    status["code"] = error.code
    return status


def success(resource: Resource, name: str, uid: str) -> Manifest:
    details = {**about(resource, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
