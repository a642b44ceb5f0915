"""Collects all known versions of one object whose differences are explained.

In: desired, live, applied and predicted manifests of an object. Out: the values of a field in each of them. Never:
asks a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.annotations import FIELD_MANAGER
from argosy.gitops.application.step_results import FieldOrigin, Pair
from argosy.gitops.diff.three_way_diff import read_last_applied
from argosy.kube.objects import Manifest
from argosy.kube.patch.json_pointer import format_tokens, parse

ELEMENT_KEY_FIELDS: Final = ("name", "mountPath", "containerPort", "port", "key", "ip", "topologyKey", "type")
# k8s: `spec.selector: Invalid value: {…}: field is immutable`; several errors are in brackets, comma-separated.
_FIELD_ERROR: Final = re.compile(
    r"(?:^|[\[,:] ?)((?:[a-z]\w*)(?:[.\[][^:,\s]*)?): (Invalid value|Forbidden|Required value)"
)
# k8s: server-side apply reports them from the root, `.spec.template.spec.restart: field not declared in schema`
_UNDECLARED_FIELD: Final = re.compile(r"\.([\w.\[\]=\",-]+): (field not declared in schema)")


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about one object. Everything but the pair may be unknown; then fewer causes can be found."""

    app: str
    pair: Pair
    is_served: bool = True
    predicted: Manifest | None = None  # result of a dry-run apply
    rejected_fields: Mapping[str, str] = field(
        default_factory=dict
    )  # fields that the API server rejects, with its messages
    with_defaults: Manifest | None = None  # desired manifest with the defaults of its kind
    on_default_branch: Manifest | None = None  # manifest on the default branch
    default_branch: str = ""  # set if the Application follows another branch
    ref: str = ""  # the ref that the Application follows
    other_revision: str = ""  # the revision compared with, if the Application does not follow it
    was_applied: bool = False  # the last sync of the current desired state wrote it
    origins: Mapping[str, FieldOrigin] = field(default_factory=dict)  # by pointer: where the desired value is written
    controller: str = FIELD_MANAGER

    @property
    def last_applied(self) -> Manifest | None:
        """Last applied manifest, if recorded. None for a Secret, because stringData becomes data."""
        if self.pair.live is None or self.pair.key.kind == "Secret":
            return None
        return read_last_applied(self.pair.live)

    @property
    def reference_manifest(self) -> Manifest:
        """The manifest that pointers of differences refer to."""
        return self.pair.compared or self.pair.live or {}

    def get_value(self, pointer: str, manifest: Manifest | None) -> Any:
        """Return a field's value in another manifest of the same object; ABSENT if it has none."""
        return get_matching_value(manifest, parse(pointer), self.reference_manifest)


def get_matching_value(manifest: Any, tokens: Sequence[str], reference: Any) -> Any:
    """Return the value that the tokens address in `reference`; list elements are matched by their names."""
    return _walk(manifest, tokens, reference)[1]


def translate_pointer(manifest: Any, pointer: str, reference: Any) -> str:
    """Translate a pointer from `reference` to `manifest`, whose lists may be ordered otherwise; stops where it ends."""
    return format_tokens(_walk(manifest, parse(pointer), reference)[0])


def _walk(manifest: Any, tokens: Sequence[str], reference: Any) -> tuple[list[str], Any]:
    value, path = manifest, list[str]()
    for token in tokens:
        if isinstance(value, list):
            own_token = str(
                _find_element_index(value, int(token) if token.isdecimal() else -1, _get_child(reference, token))
            )
        else:
            own_token = token
        value, reference = _get_child(value, own_token), _get_child(reference, token)
        if value is ABSENT:
            return path, ABSENT
        path.append(own_token)
    return path, ABSENT if value is None and manifest is None else value


def _get_child(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token, ABSENT)
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
        return value[int(token)]
    return ABSENT


def _find_element_index(items: Sequence[Any], index: int, reference: Any) -> int:
    """Return the index of the element with the same name; the length of the list if there is none."""
    if isinstance(reference, dict):
        for name in ELEMENT_KEY_FIELDS:
            if name in reference and all(isinstance(item, dict) for item in items):
                matches = (position for position, item in enumerate(items) if item.get(name) == reference[name])
                return next(matches, len(items))
    return index if index >= 0 else len(items)


def read_rejected_fields(message: str, details: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the fields that a server rejects, with messages: from its causes, or else parsed from its message."""
    causes = (details or {}).get("causes")
    rejected: dict[str, str] = {}
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("field"):
            rejected[str(cause["field"])] = str(cause.get("message") or "")
    if rejected or not message:
        return rejected
    matches = [*_FIELD_ERROR.finditer(message), *_UNDECLARED_FIELD.finditer(message)]
    return {match[1]: message[match.start(2) :] for match in matches}


def find_rejection_message(pointer: str, rejected_fields: Mapping[str, str]) -> str:
    """Return the server's message about the field or a parent; empty if none. k8s: messages name exceptions."""
    tokens = parse(pointer)
    for name, message in rejected_fields.items():
        path = re.findall(r"[^.\[\]]+", name)
        if tokens[: len(path)] == path[: len(tokens)] and not _is_excepted(tokens[len(path) :], message):
            return message
    return ""


def _is_excepted(below: Sequence[str], message: str) -> bool:
    _, _, after_other_than = message.partition(" other than ")
    _, _, after_except = message.partition(" except ")
    exception_names = re.findall(r"[\w]+", after_other_than or after_except)
    return bool(below) and below[0] in exception_names


def is_immutable_error(message: str) -> bool:
    return any(phrase in message for phrase in ("immutable", "updates to ", "may not change", "may not be changed"))


def is_undeclared_field_error(message: str) -> bool:
    return message.startswith("field not declared in schema")
