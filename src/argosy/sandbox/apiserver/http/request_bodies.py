"""Parses request bodies (JSON, YAML, protobuf, patches) and write options in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from argosy.errors import ManifestError, UserError
from argosy.kube.client import PatchKind, User
from argosy.kube.objects import read_json, read_yaml
from argosy.kube.objects.input_limits import InputLimits, check_nodes
from argosy.kube.schema import field_error, protobuf_envelope
from argosy.sandbox.apiserver import status_errors, undecodable_patch_result_errors
from argosy.sandbox.apiserver.http.content_negotiation import PROTOBUF_MEDIA_TYPE
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.write_call_and_result_types import FieldValidation, RegistryCall

ACCEPTED_MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
ERROR_PREFIXES = {None: "error decoding YAML: ", PatchKind.STRATEGIC: ""}
APPLY_MEDIA_TYPE = "application/apply-patch+yaml"
MAX_MANAGER_BYTES = 128
BODY_LIMITS = InputLimits()


class DecodedBody(NamedTuple):
    value: Any
    duplicates: tuple[str, ...] = ()


def parse_media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, kind: str, *, strict: bool) -> DecodedBody:
    """Parse the object in a request body; `kind` is the expected kind, for the error message."""
    media = parse_media_type(content_type) or "application/json"
    try:
        match media:
            case "application/json":
                parsed = read_json(body, strict=strict)
                _check_node_count(body, parsed.value)
                return DecodedBody(parsed.value, parsed.duplicates)
            case "application/yaml":
                value = read_yaml(body, strict=strict)
                _check_node_count(body, value)
                return DecodedBody(value)
            case _ if media == PROTOBUF_MEDIA_TYPE:
                return DecodedBody(protobuf_envelope.decode(body).value)
    except UserError as error:
        body_start = body[:64].decode(errors="replace")
        reason = f"couldn't get version/kind; json parse error: {_format_error(error, media)}"
        message = f"the object provided is unrecognized (must be of type {kind}): {reason} ({body_start})"
        raise status_errors.bad_request(message) from error
    unsupported_message = (
        f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED_MEDIA_TYPES}"
    )
    raise status_errors.unsupported_media(unsupported_message)


def _check_node_count(body: bytes, value: Any) -> None:
    """JSON has the same node limit as YAML, which is more than any object that a real server could store."""
    if body.count(b",") > BODY_LIMITS.nodes // 2:
        check_nodes(value, BODY_LIMITS, "")


def estimate_work_bytes(body: bytes, media_type: str, value: Any) -> int:
    """Size of the body, or of its JSON if it is YAML with aliases, which may expand."""
    if b"*" not in body or "yaml" not in media_type:
        return len(body)
    try:
        return max(len(body), len(orjson.dumps(value)))
    except TypeError:
        return len(body)


def _format_error(error: UserError, media: str) -> str:
    """k8s: errors in YAML include the line, errors in JSON do not."""
    return str(error) if media in ("application/yaml", APPLY_MEDIA_TYPE) else error.message


def read_patch(body: bytes, content_type: str, served: ApiKind) -> tuple[PatchKind | None, Any]:
    """Parse a patch. The kind is None for server-side apply."""
    media = parse_media_type(content_type)
    kinds: Mapping[str, PatchKind | None] = {APPLY_MEDIA_TYPE: None, **{str(kind): kind for kind in PatchKind}}
    if media not in kinds:
        raise status_errors.unsupported_media("415: Unsupported Media Type", details={})
    kind = kinds[media]
    if kind is PatchKind.STRATEGIC and served.resource.custom:
        accepted = f"{PatchKind.JSON}, {PatchKind.MERGE}, {APPLY_MEDIA_TYPE}"
        message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise status_errors.unsupported_media(message)
    try:
        if kind is None:
            config = read_yaml(body, strict=True)
            _check_node_count(body, config)
            return None, config
        patch = read_json(body).value
        _check_node_count(body, patch)
        if kind is PatchKind.JSON and patch is not None and not isinstance(patch, list):
            raise status_errors.bad_request(undecodable_patch_result_errors.format_not_a_list_error(patch))
        return kind, patch
    except ManifestError as error:
        prefix = ERROR_PREFIXES.get(kind, "error decoding patch: ")
        raise status_errors.bad_request(prefix + _format_error(error, media)) from error
    except UserError as error:
        raise status_errors.bad_request(str(error)) from error


def read_write_options(query: Mapping[str, str], user: User, user_agent: str, options_kind: str) -> RegistryCall:
    """Read the options of a write. `options_kind` is their kind, for error messages."""
    field_errors = []
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        field_errors.append(field_error.not_supported("dryRun", f'[]string{{"{dry_run}"}}', ["All"]))
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        supported = ["", "Ignore", "Strict", "Warn"]
        field_errors.append(field_error.not_supported("fieldValidation", f'"{validation}"', supported))
    manager = query.get("fieldManager", "")
    if len(manager) > MAX_MANAGER_BYTES:
        field_errors.append(
            field_error.FieldError(
                "fieldManager",
                field_error.FieldErrorType.TOO_LONG,
                f"Too long: may not be more than {MAX_MANAGER_BYTES} bytes",
            )
        )
    elif not manager.isprintable():
        detail = "should only contain printable characters"
        field_errors.append(field_error.invalid("fieldManager", field_error.format_go_value(manager), detail))
    if field_errors:
        raise status_errors.invalid_options(options_kind, *field_errors)
    field_validation: FieldValidation = validation or "Warn"  # type: ignore[assignment]
    field_manager = manager or user_agent.partition("/")[0][:MAX_MANAGER_BYTES] or "unknown"
    return RegistryCall(user, field_manager, bool(dry_run), field_validation, query.get("force", "") in ("1", "true"))
