"""Decodes request bodies and patched objects as a kind, and applies patches.

In: a parsed request body and a served kind. Out: a manifest and warnings, or an error in Kubernetes' words.
Never: reads the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.errors import ClusterError, ManifestError, PatchError
from argosy.kube.client import PatchKind
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.patch import json_patch, merge_patch, strategic_merge
from argosy.kube.patch.json_patch import PatchTooLarge
from argosy.kube.schema import field_error, typed_json
from argosy.kube.schema.builtin_types import type_of
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.registry_call import Validation
from argosy.sandbox.apiserver.served_kind import Served, without_status

APPLIED_TO_STATUS = ("apiVersion", "kind", "metadata", "status")
ANY_GROUP = ("DeleteOptions",)  # k8s: registered in every group


class Undecodable(ClusterError):
    """A body that cannot be decoded as its kind; `detail` is the cause without the sentence around it."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message, code=400, reason="BadRequest")
        self.why = why


def decoded(
    served: Served, value: Any, validation: Validation, duplicates: Sequence[str] = ()
) -> tuple[Manifest, Sequence[str]]:
    """Decode a body as this kind; unknown fields are an error, a warning, or ignored."""
    resource = served.resource
    if not isinstance(value, dict):
        raise status_errors.bad_request(
            _cannot_handle(served, f"json: cannot unmarshal into a {resource.kind}: no object")
        )
    if value.get("kind", resource.kind) != resource.kind or value.get("apiVersion", resource.api_version) != (
        resource.api_version
    ):
        raise _wrong_kind(served, value)
    if served.resource.custom and not (value.get("kind") and value.get("apiVersion")):
        raise status_errors.bad_request("Object 'Kind' is missing in the object; set apiVersion and kind")
    try:
        manifest, unknown = served.decode(value)
        if resource.custom:
            manifest = {**manifest, "metadata": _decode_metadata(value)}
    except ManifestError as error:
        raise Undecodable(_cannot_handle(served, error.message), error.message) from error
    given = value.get("metadata")
    if isinstance(given, dict) and given.get("managedFields") == []:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "managedFields": []}}
    problems = [f'duplicate field "{path}"' for path in duplicates] + [f'unknown field "{path}"' for path in unknown]
    if problems and validation == "Strict":
        why = "strict decoding error: " + ", ".join(problems)
        raise Undecodable(_cannot_handle(served, why), why)
    return manifest, problems if validation == "Warn" else ()


def _decode_metadata(value: Manifest) -> dict[str, Any]:
    """k8s: metadata of custom objects is decoded as ObjectMeta, independent of their schema; null counts as empty."""
    type_ = type_of("meta.k8s.io", "v1", "PartialObjectMetadata")
    assert type_ is not None
    only = {"metadata": value.get("metadata")}
    decoded = typed_json.decode(type_, only, kind="PartialObjectMetadata", api_version="meta.k8s.io/v1")
    return decoded.manifest.get("metadata") or {}


def decoded_as(api_version: str, kind: str, value: Any) -> Manifest:
    """Decode a body that is not the object itself: options, a Scale, a Binding, an Eviction, a TokenRequest."""
    group, version = split_api_version(api_version)
    type_ = type_of(group, version, kind)
    assert type_ is not None
    try:
        if not isinstance(value, dict):
            raise ManifestError(f"json: cannot unmarshal into a {kind}: no object")
        sent = value.get("kind") or kind
        if kind not in ANY_GROUP and (sent, value.get("apiVersion") or api_version) != (kind, api_version):
            raise _not_that_kind(str(sent), str(value.get("apiVersion") or ""), group, kind)
        return typed_json.decode(type_, value, kind=kind, api_version=api_version).manifest
    except ManifestError as error:
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {error.message}'
        raise status_errors.bad_request(message) from error


def _cannot_handle(served: Served, why: str) -> str:
    kind = served.resource.kind
    return f'{kind} in version "{served.resource.version}" cannot be handled as a {kind}: {why}'


def _wrong_kind(served: Served, value: Mapping[str, Any]) -> ClusterError:
    resource = served.resource
    kind, api_version = str(value.get("kind") or ""), str(value.get("apiVersion") or "")
    if not resource.custom:
        return _not_that_kind(kind, api_version, resource.group, resource.kind)
    if api_version != resource.api_version:
        expected = f"does not match the expected API version ({resource.api_version})"
        return status_errors.bad_request(f"the API version in the data ({api_version}) {expected}")
    problem = field_error.invalid("kind", field_error.go_value(kind), f"must be {resource.kind}")
    name = (value.get("metadata") or {}).get("name", "") if isinstance(value.get("metadata"), dict) else ""
    return status_errors.invalid(resource, str(name), [problem], kind=kind)


def _not_that_kind(kind: str, api_version: str, wanted_group: str, wanted: str) -> Undecodable:
    """k8s: a known kind fails in conversion; an unknown one is reported as not registered."""
    group, version = split_api_version(api_version)
    if type_of(group, version, kind) is None:
        why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:100"'
    else:
        package = wanted_group.split(".")[0] or "core"
        why = f"converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion"
    return Undecodable(f'{kind} in version "{version}" cannot be handled as a {wanted}: {why}', why)


def patched(served: Served, old: Manifest, patch: Any, kind: PatchKind) -> Any:
    try:
        match kind:
            case PatchKind.JSON if not isinstance(patch, list):
                raise _unreadable(patch, "[]handlers.jsonPatchOp")
            case PatchKind.JSON:
                # k8s: its library treats a replace of a missing value as an add
                return json_patch.apply(old, patch, lenient_replace=True)
            case _ if patch is not None and not isinstance(patch, dict):
                raise _unreadable(patch, "map[string]interface {}")
            case PatchKind.STRATEGIC:
                return strategic_merge.apply(old, patch or {}, served.shape)
            case _:
                return merge_patch.apply(old, patch or {})
    except PatchTooLarge as error:
        raise status_errors.too_large(str(error)) from error
    except PatchError as error:
        if kind is PatchKind.JSON:
            raise status_errors.unprocessable_patch() from error
        raise status_errors.bad_request(str(error)) from error


def has_copies(patch: Any) -> bool:
    """True if it is a JSON patch with a copy operation."""
    return isinstance(patch, list) and any(isinstance(each, dict) and each.get("op") == "copy" for each in patch)


def _unreadable(patch: Any, wanted: str) -> ClusterError:
    found = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(patch), "number")
    return status_errors.bad_request(
        f"error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
    )


def applicable(served: Served, config: Any, subresource: str) -> Manifest:
    """Check the body of a server-side apply, and drop the fields that this path cannot set."""
    if not isinstance(config, dict):
        raise status_errors.bad_request("error decoding YAML: the body is not an object; send one manifest")
    metadata = config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("managedFields"):
        raise status_errors.bad_request("metadata.managedFields must be nil")
    if (config.get("apiVersion"), config.get("kind")) != (served.resource.api_version, served.resource.kind):
        group, version = split_api_version(str(config.get("apiVersion") or ""))
        raise status_errors.bad_request(f"invalid object type: {group}/{version}, Kind={config.get('kind') or ''}")
    config = {**config, "metadata": metadata}
    # k8s: fields of another subresource are neither set nor owned by this one
    if subresource == "status":
        return {field: value for field, value in config.items() if field in APPLIED_TO_STATUS}
    return without_status(config) if served.resource.subresource("status") else config
