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
from argosy.gitops.application.step_results import Origin, Pair
from argosy.gitops.diff.three_way_diff import last_applied
from argosy.kube.objects import Manifest
from argosy.kube.patch.json_pointer import format_tokens, parse

NAMES: Final = ("name", "mountPath", "containerPort", "port", "key", "ip", "topologyKey", "type")
# k8s: `spec.selector: Invalid value: {…}: field is immutable`; several errors are in brackets, comma-separated.
_SAID: Final = re.compile(r"(?:^|[\[,:] ?)((?:[a-z]\w*)(?:[.\[][^:,\s]*)?): (Invalid value|Forbidden|Required value)")
# k8s: server-side apply reports them from the root, `.spec.template.spec.restart: field not declared in schema`
_UNDECLARED: Final = re.compile(r"\.([\w.\[\]=\",-]+): (field not declared in schema)")


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
    after: Manifest | None = None  # result of a dry-run apply
    refused: Mapping[str, str] = field(default_factory=dict)  # fields that the API server rejects, with its messages
    filled: Manifest | None = None  # desired manifest with the defaults of its kind
    elsewhere: Manifest | None = None  # manifest on the default branch
    default_branch: str = ""  # set if the Application follows another branch
    ref: str = ""  # the ref that the Application follows
    instead: str = ""  # the revision compared with, if the Application does not follow it
    was_applied: bool = False  # the last sync of the current desired state wrote it
    origins: Mapping[str, Origin] = field(default_factory=dict)  # by pointer: where the desired value is written
    controller: str = FIELD_MANAGER

    @property
    def applied(self) -> Manifest | None:
        """Last applied manifest, if recorded. None for a Secret, because stringData becomes data."""
        if self.pair.live is None or self.pair.key.kind == "Secret":
            return None
        return last_applied(self.pair.live)

    @property
    def live_form(self) -> Manifest:
        """The manifest that pointers of differences refer to."""
        return self.pair.compared or self.pair.live or {}

    def at(self, pointer: str, manifest: Manifest | None) -> Any:
        """Return a field's value in another manifest of the same object; ABSENT if it has none."""
        return value_at(manifest, parse(pointer), self.live_form)


def value_at(manifest: Any, tokens: Sequence[str], like: Any) -> Any:
    """Return the value that the tokens address in `reference`; list elements are matched by their names."""
    return _walk(manifest, tokens, like)[1]


def pointer_in(manifest: Any, pointer: str, like: Any) -> str:
    """Translate a pointer from `reference` to `manifest`, whose lists may be ordered otherwise; stops where it ends."""
    return format_tokens(_walk(manifest, parse(pointer), like)[0])


def _walk(manifest: Any, tokens: Sequence[str], like: Any) -> tuple[list[str], Any]:
    here, way = manifest, list[str]()
    for token in tokens:
        if isinstance(here, list):
            token_here = str(_index(here, int(token) if token.isdecimal() else -1, _step(like, token)))
        else:
            token_here = token
        here, like = _step(here, token_here), _step(like, token)
        if here is ABSENT:
            return way, ABSENT
        way.append(token_here)
    return way, ABSENT if here is None and manifest is None else here


def _step(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token, ABSENT)
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
        return value[int(token)]
    return ABSENT


def _index(items: Sequence[Any], index: int, like: Any) -> int:
    """Return the index of the element with the same name; the length of the list if there is none."""
    if isinstance(like, dict):
        for name in NAMES:
            if name in like and all(isinstance(item, dict) for item in items):
                found = (place for place, item in enumerate(items) if item.get(name) == like[name])
                return next(found, len(items))
    return index if index >= 0 else len(items)


def refused_fields(message: str, details: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the fields that a server rejects, with messages: from its causes, or else parsed from its message."""
    causes = (details or {}).get("causes")
    found: dict[str, str] = {}
    for each in causes if isinstance(causes, list) else ():
        if isinstance(each, dict) and each.get("field"):
            found[str(each["field"])] = str(each.get("message") or "")
    if found or not message:
        return found
    said = [*_SAID.finditer(message), *_UNDECLARED.finditer(message)]
    return {match[1]: message[match.start(2) :] for match in said}


def refusal_of(pointer: str, refused: Mapping[str, str]) -> str:
    """Return the server's message about the field or a parent; empty if none. k8s: messages name exceptions."""
    tokens = parse(pointer)
    for name, message in refused.items():
        path = re.findall(r"[^.\[\]]+", name)
        if tokens[: len(path)] == path[: len(tokens)] and not _is_excepted(tokens[len(path) :], message):
            return message
    return ""


def _is_excepted(below: Sequence[str], message: str) -> bool:
    _, _, excepted = message.partition(" other than ")
    _, _, kept = message.partition(" except ")
    named = re.findall(r"[\w]+", excepted or kept)
    return bool(below) and below[0] in named


def is_immutable(message: str) -> bool:
    return any(words in message for words in ("immutable", "updates to ", "may not change", "may not be changed"))


def is_undeclared(message: str) -> bool:
    return message.startswith("field not declared in schema")
