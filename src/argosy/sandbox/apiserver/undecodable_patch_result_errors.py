"""Errors for patches whose result cannot be decoded as its kind.

In: the patch, the patched object, and the decoding error. Out: an Invalid error. Never: decodes anything.
# k8s: strategic patches are converted to Go types without JSON in between, so their messages differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from argosy.errors import Invalid
from argosy.kube.client import PatchKind
from argosy.kube.objects.go_format import format_value
from argosy.sandbox.apiserver import status_errors

_TYPE_MISMATCH = re.compile(r"json: cannot unmarshal (?P<given>\w+)(?: \S+)? into .* of type (?P<type>\S+)$")
_ORDER_DIRECTIVE = "$setElementOrder/"
_INTEGER_TYPES = re.compile(r"u?int\d*")


def build_undecodable_patch_error(kind: PatchKind, patch: Any, result: Any, reason: str) -> Invalid:
    if kind is PatchKind.STRATEGIC:
        shown_patch, reason = format_value(_drop_patch_directives(patch)), _translate_decoder_message(reason)
    else:
        shown_patch = orjson.dumps(result).decode()
    return status_errors.undecodable_patch(shown_patch, reason)


def format_not_a_list_error(patch: Any) -> str:
    reason = f"json: cannot unmarshal {_json_type_name(patch)} into Go value of type []handlers.jsonPatchOp"
    return f"error decoding patch: {reason}"


def _drop_patch_directives(patch: Any) -> Any:
    """k8s: merging removes directives and ordered lists from the patch before the message is built."""
    if not isinstance(patch, Mapping):
        return patch
    ordered_lists = {name.removeprefix(_ORDER_DIRECTIVE) for name in patch if name.startswith(_ORDER_DIRECTIVE)}
    remaining = (
        name
        for name in patch
        if name not in ordered_lists and not name.startswith((_ORDER_DIRECTIVE, "$patch", "$retainKeys"))
    )
    return {name: _drop_patch_directives(patch[name]) for name in remaining}


def _json_type_name(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case Mapping():
            return "object"
        case str():
            return "string"
    return "number"


def _translate_decoder_message(reason: str) -> str:
    """Translate a message of Go's JSON decoder to that of its unstructured converter."""
    if reason.startswith("illegal base64"):
        return f"error decoding from json: {reason}"
    match = _TYPE_MISMATCH.match(reason)
    if not match:
        return reason
    json_type, type_ = match["given"], match["type"]
    go_kind = {"object": "map", "array": "slice", "number": "int64"}.get(json_type, json_type)
    if type_.startswith("[]"):
        return f"cannot restore slice from {go_kind}"
    if type_.startswith("map["):
        return f"cannot restore map from {go_kind}"
    if "." in type_:
        return f"cannot restore struct from: {go_kind}"
    if json_type == "number" and type_ == "string":
        return "cannot convert int64 to string"
    if json_type == "number" and _INTEGER_TYPES.fullmatch(type_):
        return f"cannot convert float64 to {type_}"
    return f"unrecognized type: {type_}"
