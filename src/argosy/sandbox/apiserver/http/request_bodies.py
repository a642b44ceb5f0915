"""Parses request bodies (JSON, YAML, protobuf, patches) and write options in the URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from argosy.errors import ManifestError, UserError
from argosy.kube.client import PatchKind, User
from argosy.kube.objects import load, load_json
from argosy.kube.objects.input_limits import Limits, check_nodes
from argosy.kube.schema import field_error, protobuf
from argosy.sandbox.apiserver import patch_errors, status_errors
from argosy.sandbox.apiserver.http.content_negotiation import PROTOBUF
from argosy.sandbox.apiserver.registry_call import Call, Validation
from argosy.sandbox.apiserver.served_kind import Served

ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
PREFIXES = {None: "error decoding YAML: ", PatchKind.STRATEGIC: ""}
APPLY = "application/apply-patch+yaml"
MOST_MANAGER = 128
LIMITS = Limits()


class Sent(NamedTuple):
    value: Any
    duplicates: tuple[str, ...] = ()


def media_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, kind: str, *, strict: bool) -> Sent:
    """Parse the object in a request body; `kind` is the expected kind, for the error message."""
    media = media_of(content_type) or "application/json"
    try:
        match media:
            case "application/json":
                read = load_json(body, strict=strict)
                _check_count(body, read.value)
                return Sent(read.value, read.duplicates)
            case "application/yaml":
                value = load(body, strict=strict)
                _check_count(body, value)
                return Sent(value)
            case _ if media == PROTOBUF:
                return Sent(protobuf.decode(body).value)
    except UserError as error:
        shown = body[:64].decode(errors="replace")
        why = f"couldn't get version/kind; json parse error: {_said(error, media)}"
        message = f"the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
        raise status_errors.bad_request(message) from error
    known = f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
    raise status_errors.unsupported_media(known)


def _check_count(body: bytes, value: Any) -> None:
    """JSON has the same node limit as YAML, which is more than any object that a real server could store."""
    if body.count(b",") > LIMITS.nodes // 2:
        check_nodes(value, LIMITS, "")


def size_of(body: bytes, media: str, value: Any) -> int:
    """Size of the body, or of its JSON if it is YAML with aliases, which may expand."""
    if b"*" not in body or "yaml" not in media:
        return len(body)
    try:
        return max(len(body), len(orjson.dumps(value)))
    except TypeError:
        return len(body)


def _said(error: UserError, media: str) -> str:
    """k8s: errors in YAML include the line, errors in JSON do not."""
    return str(error) if media in ("application/yaml", APPLY) else error.message


def read_patch(body: bytes, content_type: str, served: Served) -> tuple[PatchKind | None, Any]:
    """Parse a patch. The kind is None for server-side apply."""
    media = media_of(content_type)
    kinds: Mapping[str, PatchKind | None] = {APPLY: None, **{str(kind): kind for kind in PatchKind}}
    if media not in kinds:
        raise status_errors.unsupported_media("415: Unsupported Media Type", details={})
    kind = kinds[media]
    if kind is PatchKind.STRATEGIC and served.resource.custom:
        known = f"{PatchKind.JSON}, {PatchKind.MERGE}, {APPLY}"
        message = f"the body of the request was in an unknown format - accepted media types include: {known}"
        raise status_errors.unsupported_media(message)
    try:
        if kind is None:
            config = load(body, strict=True)
            _check_count(body, config)
            return None, config
        patch = load_json(body).value
        _check_count(body, patch)
        if kind is PatchKind.JSON and patch is not None and not isinstance(patch, list):
            raise status_errors.bad_request(patch_errors.not_a_list_of_operations(patch))
        return kind, patch
    except ManifestError as error:
        prefix = PREFIXES.get(kind, "error decoding patch: ")
        raise status_errors.bad_request(prefix + _said(error, media)) from error
    except UserError as error:
        raise status_errors.bad_request(str(error)) from error


def read_call(query: Mapping[str, str], user: User, agent: str, options: str) -> Call:
    """Read the options of a write. `options_kind` is their kind, for error messages."""
    faults = []
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        faults.append(field_error.not_supported("dryRun", f'[]string{{"{dry_run}"}}', ["All"]))
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        known = ["", "Ignore", "Strict", "Warn"]
        faults.append(field_error.not_supported("fieldValidation", f'"{validation}"', known))
    manager = query.get("fieldManager", "")
    if len(manager) > MOST_MANAGER:
        faults.append(
            field_error.Fault(
                "fieldManager", field_error.FaultKind.TOO_LONG, f"Too long: may not be more than {MOST_MANAGER} bytes"
            )
        )
    elif not manager.isprintable():
        complaint = "should only contain printable characters"
        faults.append(field_error.invalid("fieldManager", field_error.go_value(manager), complaint))
    if faults:
        raise status_errors.invalid_options(options, *faults)
    chosen: Validation = validation or "Warn"  # type: ignore[assignment]
    named = manager or agent.partition("/")[0][:MOST_MANAGER] or "unknown"
    return Call(user, named, bool(dry_run), chosen, query.get("force", "") in ("1", "true"))
