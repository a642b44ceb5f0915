"""Reads rendered manifests into fields with addresses that are the same in every environment.

In: rendered manifests, and the environment's name prefix and suffix. Out: EnvironmentContents: classified fields by
object and path. Never: keeps a value of a Secret; compares anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.object_changes import KUSTOMIZE_HASH_SUFFIX
from argosy.kube.objects import Manifest, key_of_desired
from argosy.kube.resource_key import ResourceKey

_GENERATED_KINDS: Final = ("ConfigMap", "Secret")
_STEP_PATTERN: Final = re.compile(r'(?:"([^"]*)"|([^."\[]+))(\[[^\]]*\])?')
_IMAGE_FIELDS: Final = ("image", "containerImage")
_MODEL_FIELDS: Final = ("storageUri", "modelUri")
_PARAMETER_LIST_FIELDS: Final = ("args", "command")
_PARAMETER_FIELDS: Final = ("parameters", "env", "runtimeVersion")


class FieldKind(StrEnum):
    IMAGE = "image"
    MODEL = "model"
    PARAMETER = "parameter"
    ENVIRONMENT = "own"  # specific to the environment: size, names, addresses


VERSION_KINDS: Final = (FieldKind.IMAGE, FieldKind.MODEL)
PROMOTED_KINDS: Final = (*VERSION_KINDS, FieldKind.PARAMETER)


class ObjectIdentity(NamedTuple):
    """An object by kind and by its name without the environment's prefix and suffix."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class FieldAddress(NamedTuple):
    """A field of an object; list elements are addressed by name if they have one: `spec.containers[web].image`."""

    owner: ObjectIdentity
    path: str


@dataclass(frozen=True)
class ContentField:
    value: Any
    pointer: str  # JSON pointer in this manifest
    kind: FieldKind
    key: ResourceKey


@dataclass(frozen=True)
class NameDecoration:
    prefix: str = ""
    suffix: str = ""

    def strip_name(self, name: str, kind: str = "") -> str:
        name = KUSTOMIZE_HASH_SUFFIX.sub("", name) if kind in _GENERATED_KINDS else name
        return name.removeprefix(self.prefix).removesuffix(self.suffix) or name


_NO_DECORATION: Final = NameDecoration()


@dataclass(frozen=True)
class Release:
    """The state of an environment at a commit; the unit of promotion."""

    name: str  # r42
    commit: str
    is_by_hand: bool = False  # committed after the last promotion, without a promotion

    def __str__(self) -> str:
        return f"{self.name} ({self.commit[:7]})"


@dataclass(frozen=True)
class EnvironmentContents:
    """All fields of an environment."""

    fields: Mapping[FieldAddress, ContentField]

    @property
    def owners(self) -> frozenset[ObjectIdentity]:
        return frozenset(address.owner for address in self.fields)

    def select_values(self, *kinds: FieldKind) -> dict[FieldAddress, Any]:
        return {address: field.value for address, field in self.fields.items() if field.kind in kinds}


def read_contents(manifests: Sequence[Manifest], decoration: NameDecoration = _NO_DECORATION) -> EnvironmentContents:
    fields: dict[FieldAddress, ContentField] = {}
    for manifest in manifests:
        key = key_of_desired(manifest)
        owner = ObjectIdentity(key.group, key.kind, decoration.strip_name(key.name, key.kind))
        if owner.kind == "Secret":
            fields[FieldAddress(owner, "kind")] = ContentField(owner.kind, "/kind", FieldKind.ENVIRONMENT, key)
            continue
        for path, pointer, value in _iterate_leaves(manifest, "", ""):
            fields[FieldAddress(owner, path)] = ContentField(value, pointer, classify_field(owner.kind, path), key)
    return EnvironmentContents(fields)


def _iterate_leaves(value: Any, path: str, pointer: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            step = str(name).replace("~", "~0").replace("/", "~1")
            yield from _iterate_leaves(
                item, f"{path}.{_quote_name(str(name))}" if path else str(name), f"{pointer}/{step}"
            )
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            name = item.get("name") if isinstance(item, dict) else None
            yield from _iterate_leaves(item, f"{path}[{index if name is None else name}]", f"{pointer}/{index}")
    else:
        yield path, pointer, value


def _quote_name(name: str) -> str:
    return f'"{name}"' if "." in name else name


def classify_field(kind: str, path: str) -> FieldKind:
    """Classify by kind and path only, so that the result is the same in every environment."""
    if kind == "ConfigMap":
        return FieldKind.PARAMETER if path.startswith(("data.", "binaryData.")) else FieldKind.ENVIRONMENT
    if path.startswith("metadata."):
        return FieldKind.ENVIRONMENT
    steps = [step.name for step in parse_field_path(path)]
    last = steps[-1]
    if last in _IMAGE_FIELDS:
        return FieldKind.IMAGE
    if last in _MODEL_FIELDS or steps[-2:] in (["storage", "path"], ["storage", "key"]):
        return FieldKind.MODEL
    if last in _PARAMETER_LIST_FIELDS or any(step_name in _PARAMETER_FIELDS for step_name in steps):
        return FieldKind.PARAMETER
    return FieldKind.ENVIRONMENT


class FieldPathStep(NamedTuple):
    name: str
    element: str | None = None  # name or index of a list element


def parse_field_path(path: str) -> list[FieldPathStep]:
    """Parse a field path into its steps."""
    steps = []
    for quoted, plain, element in _STEP_PATTERN.findall(path):
        steps.append(FieldPathStep(quoted or plain, element[1:-1] if element else None))
    return steps
