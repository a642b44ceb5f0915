"""The transformer configuration in effect. In: the default table, and the files of `configurations`.

Out: field specs by transformer and kind. Never: changes; a merge returns a new configuration.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.error_lines import placed
from argosy.gitops.render.kustomize.field_specs import FieldSpec, merged, ordered, spec_of
from argosy.gitops.render.kustomize.gvk import Gvk, order_key
from argosy.gitops.render.kustomize.kustomization_fields import FIELD_SPEC, shaped
from argosy.gitops.render.kustomize.kustomization_file import first_document, refuse_version
from argosy.kube.objects import Profile, load

_SPECS: Final[Any] = [FIELD_SPEC]
KINDS: Final = {
    "namePrefix": "namePrefix", "nameSuffix": "nameSuffix", "namespace": "namespace", "commonLabels": "commonLabels",
    "labels": "labels", "templateLabels": "templateLabels", "commonAnnotations": "commonAnnotations",
    "varReference": "varReference", "images": "images", "replicas": "replicas",
}  # fmt: skip
_SHAPE: Final[Any] = {
    **dict.fromkeys(KINDS, _SPECS),
    "nameReference": [{"group": str, "version": str, "kind": str, "fieldSpecs": _SPECS}],
}
Forms = dict[str, "Forms"]
NameReferences = tuple[tuple[Gvk, tuple[FieldSpec, ...]], ...]


class Config:
    """Field specs by transformer."""

    __slots__ = ("_by_kind", "forms", "name_references", "specs")

    def __init__(self, specs: dict[str, tuple[FieldSpec, ...]], name_references: NameReferences = ()) -> None:
        self.specs = specs
        self.name_references = name_references
        self.forms: dict[Gvk, Forms] = {}
        self._by_kind: dict[tuple[str, Gvk], list[FieldSpec]] = {}

    def of(self, transformer: str) -> tuple[FieldSpec, ...]:
        return self.specs.get(transformer, ())

    def selected(self, transformer: str, gvk: Gvk) -> list[FieldSpec]:
        known = self._by_kind.get((transformer, gvk))
        if known is None:
            known = [spec for spec in self.of(transformer) if gvk.is_selected_by(spec.gvk)]
            self._by_kind[transformer, gvk] = known
        return known

    def merge(self, other: Config) -> Config:
        if other is self or other is EMPTY:
            return self
        if self is EMPTY and other is default_config():
            return other
        if other is default_config() and self in _COMPLETE:
            return self
        return self.combined(other)

    def combined(self, other: Config) -> Config:
        names = {**self.specs, **other.specs}
        specs = {name: tuple(ordered(merged(self.of(name), other.of(name)))) for name in names}
        return Config(specs, _merged_references(self.name_references, other.name_references))


def _merged_references(old: NameReferences, new: NameReferences) -> NameReferences:
    found = {target: list(specs) for target, specs in old}
    for target, specs in new:
        found[target] = merged(found.get(target, ()), specs)
    by_kind = sorted(found.items(), key=lambda pair: order_key(pair[0]))
    return tuple((target, tuple(ordered(specs))) for target, specs in by_kind)


EMPTY: Final = Config({})
_COMPLETE: Final[set[Config]] = set()


@lru_cache(1)
def default_config() -> Config:
    # Read by path: importing importlib.resources takes longer than many a build.
    table = json.loads(Path(__file__).with_name("data").joinpath("fieldspecs.json").read_text("utf-8"))
    references = tuple((Gvk(*target), tuple(map(_from_row, rows))) for target, rows in table.pop("nameReference"))
    plain = Config({name: tuple(map(_from_row, rows)) for name, rows in table.items()}, references)
    config = EMPTY.combined(plain)
    _COMPLETE.add(config)
    return config


def _from_row(row: list[Any]) -> FieldSpec:
    path, kind, version, group, create = (row + ["", "", "", "", 0][len(row) :])[:5]
    return FieldSpec(path, Gvk(group, version, kind), bool(create))


def read_config(text: bytes, file: str) -> Config:
    refuse_version(text, file)
    try:
        value = load(first_document(text), profile=Profile.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    try:
        given = shaped(value or {}, _SHAPE, file)
    except RenderError as error:
        raise placed(error, text) from None
    specs = {name: tuple(ordered(map(spec_of, given[name]))) for name in KINDS if given.get(name)}
    references = [
        (spec_of(each).gvk, tuple(map(spec_of, each.get("fieldSpecs") or ())))
        for each in given.get("nameReference") or ()
    ]
    return Config(specs, _merged_references((), tuple(references)))
