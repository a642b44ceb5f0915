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

from argosy.gitops.analysis.object_changes import HASH
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of_source

_GENERATED: Final = ("ConfigMap", "Secret")
_STEP: Final = re.compile(r'(?:"([^"]*)"|([^."\[]+))(\[[^\]]*\])?')
_IMAGES: Final = ("image", "containerImage")
_MODELS: Final = ("storageUri", "modelUri")
_LISTS_OF_PARAMETERS: Final = ("args", "command")
_PARAMETERS: Final = ("parameters", "env", "runtimeVersion")


class Kind(StrEnum):
    IMAGE = "image"
    MODEL = "model"
    PARAMETER = "parameter"
    OWN = "own"  # specific to the environment: size, names, addresses


VERSIONS: Final = (Kind.IMAGE, Kind.MODEL)
TRAVELS: Final = (*VERSIONS, Kind.PARAMETER)


class Owner(NamedTuple):
    """An object by kind and by its name without the environment's prefix and suffix."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class At(NamedTuple):
    """A field of an object; list elements are addressed by name if they have one: `spec.containers[web].image`."""

    owner: Owner
    path: str


@dataclass(frozen=True)
class Field:
    value: Any
    pointer: str  # JSON pointer in this manifest
    kind: Kind
    key: ResourceKey


@dataclass(frozen=True)
class Decoration:
    prefix: str = ""
    suffix: str = ""

    def plain(self, name: str, kind: str = "") -> str:
        name = HASH.sub("", name) if kind in _GENERATED else name
        return name.removeprefix(self.prefix).removesuffix(self.suffix) or name


_PLAIN: Final = Decoration()


@dataclass(frozen=True)
class Release:
    """The state of an environment at a commit; the unit of promotion."""

    name: str  # r42
    commit: str
    is_by_hand: bool = False  # committed after the last promotion, without a promotion

    def __str__(self) -> str:
        return f"{self.name} ({self.commit[:7]})"


@dataclass(frozen=True)
class Contents:
    """All fields of an environment."""

    fields: Mapping[At, Field]

    @property
    def owners(self) -> frozenset[Owner]:
        return frozenset(at.owner for at in self.fields)

    def of(self, *kinds: Kind) -> dict[At, Any]:
        return {at: field.value for at, field in self.fields.items() if field.kind in kinds}


def contents(manifests: Sequence[Manifest], decoration: Decoration = _PLAIN) -> Contents:
    found: dict[At, Field] = {}
    for manifest in manifests:
        key = key_of_source(manifest)
        owner = Owner(key.group, key.kind, decoration.plain(key.name, key.kind))
        if owner.kind == "Secret":
            found[At(owner, "kind")] = Field(owner.kind, "/kind", Kind.OWN, key)
            continue
        for path, pointer, value in _leaves(manifest, "", ""):
            found[At(owner, path)] = Field(value, pointer, kind_of(owner.kind, path), key)
    return Contents(found)


def _leaves(value: Any, path: str, pointer: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            step = str(name).replace("~", "~0").replace("/", "~1")
            yield from _leaves(each, f"{path}.{_shown(str(name))}" if path else str(name), f"{pointer}/{step}")
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for place, each in enumerate(value):
            name = each.get("name") if isinstance(each, dict) else None
            yield from _leaves(each, f"{path}[{place if name is None else name}]", f"{pointer}/{place}")
    else:
        yield path, pointer, value


def _shown(name: str) -> str:
    return f'"{name}"' if "." in name else name


def kind_of(kind: str, path: str) -> Kind:
    """Classify by kind and path only, so that the result is the same in every environment."""
    if kind == "ConfigMap":
        return Kind.PARAMETER if path.startswith(("data.", "binaryData.")) else Kind.OWN
    if path.startswith("metadata."):
        return Kind.OWN
    steps = [step.name for step in steps_of(path)]
    last = steps[-1]
    if last in _IMAGES:
        return Kind.IMAGE
    if last in _MODELS or steps[-2:] in (["storage", "path"], ["storage", "key"]):
        return Kind.MODEL
    if last in _LISTS_OF_PARAMETERS or any(each in _PARAMETERS for each in steps):
        return Kind.PARAMETER
    return Kind.OWN


class Step(NamedTuple):
    name: str
    element: str | None = None  # name or index of a list element


def steps_of(path: str) -> list[Step]:
    """Parse a field path into its steps."""
    found = []
    for quoted, plain, element in _STEP.findall(path):
        found.append(Step(quoted or plain, element[1:-1] if element else None))
    return found
