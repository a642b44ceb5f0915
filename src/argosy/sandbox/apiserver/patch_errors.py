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
from argosy.sandbox.apiserver import status_errors

_MISFIT = re.compile(r"json: cannot unmarshal (?P<given>\w+)(?: \S+)? into .* of type (?P<type>\S+)$")
_ORDER = "$setElementOrder/"
_WHOLE_NUMBERS = re.compile(r"u?int\d*")


def unreadable(kind: PatchKind, patch: Any, made: Any, why: str) -> Invalid:
    if kind is PatchKind.STRATEGIC:
        shown, why = go_text(_used_up(patch)), _converted(why)
    else:
        shown = orjson.dumps(made).decode()
    return status_errors.unreadable_patch(shown, why)


def not_a_list_of_operations(patch: Any) -> str:
    why = f"json: cannot unmarshal {_json_word(patch)} into Go value of type []handlers.jsonPatchOp"
    return f"error decoding patch: {why}"


def go_text(value: Any) -> str:
    """Plain data as formatted by Go's `%v`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case Mapping():
            return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
        case list():
            return "[" + " ".join(go_text(each) for each in value) + "]"
    return str(value)


def _used_up(patch: Any) -> Any:
    """k8s: merging removes directives and ordered lists from the patch before the message is built."""
    if not isinstance(patch, Mapping):
        return patch
    ordered = {name.removeprefix(_ORDER) for name in patch if name.startswith(_ORDER)}
    left = (name for name in patch if name not in ordered and not name.startswith((_ORDER, "$patch", "$retainKeys")))
    return {name: _used_up(patch[name]) for name in left}


def _json_word(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case Mapping():
            return "object"
        case str():
            return "string"
    return "number"


def _converted(why: str) -> str:
    """Translate a message of Go's JSON decoder to that of its unstructured converter."""
    if why.startswith("illegal base64"):
        return f"error decoding from json: {why}"
    found = _MISFIT.match(why)
    if not found:
        return why
    given, type_ = found["given"], found["type"]
    shape = {"object": "map", "array": "slice", "number": "int64"}.get(given, given)
    if type_.startswith("[]"):
        return f"cannot restore slice from {shape}"
    if type_.startswith("map["):
        return f"cannot restore map from {shape}"
    if "." in type_:
        return f"cannot restore struct from: {shape}"
    if given == "number" and type_ == "string":
        return "cannot convert int64 to string"
    if given == "number" and _WHOLE_NUMBERS.fullmatch(type_):
        return f"cannot convert float64 to {type_}"
    return f"unrecognized type: {type_}"
