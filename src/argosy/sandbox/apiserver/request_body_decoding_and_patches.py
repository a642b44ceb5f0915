"""Decodes request bodies and patched objects as a kind, and applies patches.

In: a parsed request body and a served kind. Out: a manifest and warnings, or an error in Kubernetes' words.
Never: reads the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.errors import ClusterError, ManifestError, PatchError
from argosy.kube.client import PatchKind
from argosy.kube.objects import Manifest
from argosy.kube.patch import json_patch, merge_patch, strategic_merge
from argosy.kube.patch.json_patch import PatchTooLarge
from argosy.kube.resource_key import split_api_version
from argosy.kube.schema import builtin_type_json_codec, field_error
from argosy.kube.schema.builtin_go_struct_fields import find_builtin_type
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind, drop_status
from argosy.sandbox.apiserver.write_call_and_result_types import FieldValidation

STATUS_APPLY_FIELDS = ("apiVersion", "kind", "metadata", "status")
KINDS_IN_EVERY_GROUP = ("DeleteOptions",)  # k8s: registered in every group


class UndecodableBody(ClusterError):
    """A body that cannot be decoded as its kind; `detail` is the cause without the sentence around it."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message, code=400, reason="BadRequest")
        self.detail = detail


def decode_object(
    served: ApiKind, body: Any, validation: FieldValidation, duplicates: Sequence[str] = ()
) -> tuple[Manifest, Sequence[str]]:
    """Decode a body as this kind; unknown fields are an error, a warning, or ignored."""
    resource = served.resource
    if not isinstance(body, dict):
        raise status_errors.bad_request(
            _format_decode_error(served, f"json: cannot unmarshal into a {resource.kind}: no object")
        )
    if body.get("kind", resource.kind) != resource.kind or body.get("apiVersion", resource.api_version) != (
        resource.api_version
    ):
        raise _build_wrong_kind_error(served, body)
    if served.resource.custom and not (body.get("kind") and body.get("apiVersion")):
        raise status_errors.bad_request("Object 'Kind' is missing in the object; set apiVersion and kind")
    try:
        manifest, unknown = served.decode(body)
        if resource.custom:
            manifest = {**manifest, "metadata": _decode_metadata(body)}
    except ManifestError as error:
        raise UndecodableBody(_format_decode_error(served, error.message), error.message) from error
    sent_metadata = body.get("metadata")
    if isinstance(sent_metadata, dict) and sent_metadata.get("managedFields") == []:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "managedFields": []}}
    problems = [f'duplicate field "{path}"' for path in duplicates] + [f'unknown field "{path}"' for path in unknown]
    if problems and validation == "Strict":
        detail = "strict decoding error: " + ", ".join(problems)
        raise UndecodableBody(_format_decode_error(served, detail), detail)
    return manifest, problems if validation == "Warn" else ()


def _decode_metadata(body: Manifest) -> dict[str, Any]:
    """k8s: metadata of custom objects is decoded as ObjectMeta, independent of their schema; null counts as empty."""
    type_ = find_builtin_type("meta.k8s.io", "v1", "PartialObjectMetadata")
    assert type_ is not None
    metadata_only = {"metadata": body.get("metadata")}
    result = builtin_type_json_codec.decode(
        type_, metadata_only, kind="PartialObjectMetadata", api_version="meta.k8s.io/v1"
    )
    return result.manifest.get("metadata") or {}


def decode_as_kind(api_version: str, kind: str, body: Any) -> Manifest:
    """Decode a body that is not the object itself: options, a Scale, a Binding, an Eviction, a TokenRequest."""
    group, version = split_api_version(api_version)
    type_ = find_builtin_type(group, version, kind)
    assert type_ is not None
    try:
        if not isinstance(body, dict):
            raise ManifestError(f"json: cannot unmarshal into a {kind}: no object")
        sent_kind = body.get("kind") or kind
        if kind not in KINDS_IN_EVERY_GROUP and (sent_kind, body.get("apiVersion") or api_version) != (
            kind,
            api_version,
        ):
            raise _build_conversion_error(str(sent_kind), str(body.get("apiVersion") or ""), group, kind)
        return builtin_type_json_codec.decode(type_, body, kind=kind, api_version=api_version).manifest
    except ManifestError as error:
        message = f'{kind} in version "{version}" cannot be handled as a {kind}: {error.message}'
        raise status_errors.bad_request(message) from error


def _format_decode_error(served: ApiKind, detail: str) -> str:
    kind = served.resource.kind
    return f'{kind} in version "{served.resource.version}" cannot be handled as a {kind}: {detail}'


def _build_wrong_kind_error(served: ApiKind, body: Mapping[str, Any]) -> ClusterError:
    resource = served.resource
    kind, api_version = str(body.get("kind") or ""), str(body.get("apiVersion") or "")
    if not resource.custom:
        return _build_conversion_error(kind, api_version, resource.group, resource.kind)
    if api_version != resource.api_version:
        expected = f"does not match the expected API version ({resource.api_version})"
        return status_errors.bad_request(f"the API version in the data ({api_version}) {expected}")
    invalid_field = field_error.invalid("kind", field_error.format_go_value(kind), f"must be {resource.kind}")
    name = (body.get("metadata") or {}).get("name", "") if isinstance(body.get("metadata"), dict) else ""
    return status_errors.invalid(resource, str(name), [invalid_field], kind=kind)


def _build_conversion_error(kind: str, api_version: str, wanted_group: str, wanted_kind: str) -> UndecodableBody:
    """k8s: a known kind fails in conversion; an unknown one is reported as not registered."""
    group, version = split_api_version(api_version)
    if find_builtin_type(group, version, kind) is None:
        detail = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:100"'
    else:
        package = wanted_group.split(".")[0] or "core"
        detail = f"converting ({version}.{kind}) to ({package}.{wanted_kind}): unknown conversion"
    return UndecodableBody(f'{kind} in version "{version}" cannot be handled as a {wanted_kind}: {detail}', detail)


def apply_patch(served: ApiKind, old: Manifest, patch: Any, kind: PatchKind) -> Any:
    try:
        match kind:
            case PatchKind.JSON if not isinstance(patch, list):
                raise _build_patch_type_error(patch, "[]handlers.jsonPatchOp")
            case PatchKind.JSON:
                # k8s: its library treats a replace of a missing value as an add
                return json_patch.apply(old, patch, lenient_replace=True)
            case _ if patch is not None and not isinstance(patch, dict):
                raise _build_patch_type_error(patch, "map[string]interface {}")
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


def has_copy_operation(patch: Any) -> bool:
    """True if it is a JSON patch with a copy operation."""
    return isinstance(patch, list) and any(
        isinstance(operation, dict) and operation.get("op") == "copy" for operation in patch
    )


def _build_patch_type_error(patch: Any, go_type: str) -> ClusterError:
    json_type = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(patch), "number")
    return status_errors.bad_request(
        f"error decoding patch: json: cannot unmarshal {json_type} into Go value of type {go_type}"
    )


def check_apply_configuration(served: ApiKind, config: Any, subresource: str) -> Manifest:
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
        return {field: value for field, value in config.items() if field in STATUS_APPLY_FIELDS}
    return drop_status(config) if served.resource.find_subresource("status") else config
