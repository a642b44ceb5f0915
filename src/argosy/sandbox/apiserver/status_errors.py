"""Errors of a Kubernetes API server (message, reason, details) as ClusterErrors, and their Status objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.errors import ArgosyError, ClusterError, Conflict, Forbidden, Gone, Invalid, StorageFull, UserError
from argosy.kube.objects import Manifest
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.field_error import FieldError, FieldErrorType

MODIFIED_MESSAGE = "the object has been modified; please apply your changes to the latest version and try again"


def build_details(resource: ApiResource, name: str, *, kind: str = "") -> dict[str, Any]:
    """The `details` of a Status: name, group and kind of the object."""
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def not_found(resource: ApiResource, name: str) -> ClusterError:
    message = f'{resource.group_resource} "{name}" not found'
    return ClusterError(message, code=404, reason="NotFound", details=build_details(resource, name))


def no_such_resource() -> ClusterError:
    message = "the server could not find the requested resource"
    return ClusterError(message, code=404, reason="NotFound", details={})


def already_exists(resource: ApiResource, name: str, *, is_terminating: bool = False) -> Conflict:
    message = f'{resource.group_resource} "{name}" already exists'
    if is_terminating:
        message = f"object is being deleted: {message}"
    return Conflict(message, reason="AlreadyExists", details=build_details(resource, name))


def conflict(resource: ApiResource, name: str, reason: str = MODIFIED_MESSAGE, *, kind: str = "") -> Conflict:
    resource_text = kind or resource.group_resource
    message = f'Operation cannot be fulfilled on {resource_text} "{name}": {reason}'
    return Conflict(message, reason="Conflict", details=build_details(resource, name, kind=kind))


def invalid(resource: ApiResource, name: str, field_errors: Sequence[FieldError], *, kind: str = "") -> Invalid:
    """`kind` is the resource's plural if the storage layer refuses, not the kind's own validation."""
    kind_name = kind or resource.kind
    kind_text = f"{kind_name}.{resource.group}" if resource.group else kind_name
    return Invalid(
        _format_invalid_message(kind_text, name, field_errors),
        reason="Invalid",
        details=_add_causes(build_details(resource, name, kind=kind_name), field_errors),
    )


def invalid_options(kind: str, *field_errors: FieldError) -> Invalid:
    """Invalid query parameters: the Status is about the options object."""
    details = _add_causes({"group": "meta.k8s.io", "kind": kind}, field_errors)
    return Invalid(_format_invalid_message(f"{kind}.meta.k8s.io", "", field_errors), reason="Invalid", details=details)


def _format_invalid_message(kind_text: str, name: str, field_errors: Sequence[FieldError]) -> str:
    texts = list(dict.fromkeys(str(error) for error in field_errors))
    shown_errors = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return f'{kind_text} "{name}" is invalid: {shown_errors}'


def _add_causes(details: dict[str, Any], field_errors: Sequence[FieldError]) -> dict[str, Any]:
    causes = [{"reason": str(error.kind), "message": error.message, "field": error.field} for error in field_errors]
    return {**details, "causes": causes}


def unprocessable_patch() -> Invalid:
    return Invalid("the server rejected our request due to an error in our request", reason="Invalid", details={})


def undecodable_patch(shown_patch: str, reason: str) -> Invalid:
    """k8s: the message contains the whole patch or patched object if that cannot be decoded as its kind."""
    invalid_field = FieldError(
        "patch", FieldErrorType.INVALID, f"Invalid value: {json.dumps(shown_patch, ensure_ascii=False)}: {reason}"
    )
    return Invalid(
        _format_invalid_message("", "", [invalid_field]), reason="Invalid", details=_add_causes({}, [invalid_field])
    )


def bad_request(message: str) -> ClusterError:
    return ClusterError(message, code=400, reason="BadRequest")


def internal_error(message: str) -> ClusterError:
    return ClusterError(message, code=500)


def method_not_allowed() -> ClusterError:
    message = "the server does not allow this method on the requested resource"
    return ClusterError(message, code=405, reason="MethodNotAllowed", details={})


def crd_terminating(resource: ApiResource) -> ClusterError:
    message = "create not allowed while custom resource definition is terminating"
    return ClusterError(message, code=405, reason="MethodNotAllowed", details=build_details(resource, ""))


def forbidden(resource: ApiResource, name: str, reason: str, causes: Sequence[Mapping[str, str]] = ()) -> Forbidden:
    details = build_details(resource, name)
    if causes:
        details["causes"] = [dict(cause) for cause in causes]
    quoted_name = f' "{name}"' if name else ""
    return Forbidden(
        f"{resource.group_resource}{quoted_name} is forbidden: {reason}", reason="Forbidden", details=details
    )


def webhook_denied(resource: ApiResource, name: str, webhook: str, reason: str) -> Forbidden:
    """k8s: the error of a validating webhook."""
    message = f'admission webhook "{webhook}" denied the request: {reason}'
    return Forbidden(message, reason="Forbidden", details=build_details(resource, name))


def namespace_terminating(resource: ApiResource, name: str, namespace: str) -> Forbidden:
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    reason = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(resource, name, reason, [cause])


def unauthorized() -> ClusterError:
    return ClusterError("Unauthorized", code=401, reason="Unauthorized")


def expired(message: str) -> Gone:
    return Gone(message, reason="Expired")


def resource_version_too_large(requested: int, current: int) -> ClusterError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    return ClusterError(message, code=504, reason="Timeout", details=details)


def too_many_requests() -> ClusterError:
    message = "Too many requests, please try again later."
    return ClusterError(message, code=429, reason="TooManyRequests", details={"retryAfterSeconds": 1})


def too_many_watches(user: str, limit: int, *, retry_seconds: int) -> ClusterError:
    message = (
        f'Too many requests, please try again later: user "{user}" has {limit} open watches, which is the limit; '
        "raise it with argosy sandbox start --max-watches-per-user"
    )
    return ClusterError(message, code=429, reason="TooManyRequests", details={"retryAfterSeconds": retry_seconds})


def body_too_large(limit: int) -> ClusterError:
    return ClusterError(f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge")


def object_too_large() -> ClusterError:
    """k8s: the error of etcd, which the server passes on unchanged."""
    return internal_error("etcdserver: request is too large")


def too_large(message: str) -> ClusterError:
    return ClusterError(message, code=413, reason="RequestEntityTooLarge")


def unsupported_media(message: str, *, details: Mapping[str, Any] | None = None) -> ClusterError:
    return ClusterError(message, code=415, reason="UnsupportedMediaType", details=details)


def not_acceptable(message: str, *, details: Mapping[str, Any] | None = None) -> ClusterError:
    return ClusterError(message, code=406, reason="NotAcceptable", details=details)


def error_to_status(error: ArgosyError) -> Manifest:
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


def build_success_status(resource: ApiResource, name: str, uid: str) -> Manifest:
    details = {**build_details(resource, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
