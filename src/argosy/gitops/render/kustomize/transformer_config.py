"""The transformer configuration in effect. In: the default table, and the files of `configurations`.

Out: field specs by transformer and kind. Never: changes; a merge returns a new configuration.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.error_lines import set_line_from_text
from argosy.gitops.render.kustomize.field_spec_traversal import (
    FieldSpec,
    merge_field_specs,
    read_field_spec,
    sort_field_specs,
)
from argosy.gitops.render.kustomize.gvk import Gvk, build_order_key
from argosy.gitops.render.kustomize.kustomization_file import cut_first_document, reject_yaml_version
from argosy.gitops.render.kustomize.kustomization_schema import FIELD_SPEC, validate_fields
from argosy.kube.objects import YamlDialect, read_yaml

_SPEC_LIST_SCHEMA: Final[Any] = [FIELD_SPEC]
TRANSFORMER_NAMES: Final = {
    "namePrefix": "namePrefix", "nameSuffix": "nameSuffix", "namespace": "namespace", "commonLabels": "commonLabels",
    "labels": "labels", "templateLabels": "templateLabels", "commonAnnotations": "commonAnnotations",
    "varReference": "varReference", "images": "images", "replicas": "replicas",
}  # fmt: skip
_CONFIG_SCHEMA: Final[Any] = {
    **dict.fromkeys(TRANSFORMER_NAMES, _SPEC_LIST_SCHEMA),
    "nameReference": [{"group": str, "version": str, "kind": str, "fieldSpecs": _SPEC_LIST_SCHEMA}],
}
PathTree = dict[str, "PathTree"]
NameReferences = tuple[tuple[Gvk, tuple[FieldSpec, ...]], ...]


class TransformerConfig:
    """Field specs by transformer."""

    __slots__ = ("_selected_specs", "name_references", "reference_paths", "specs")

    def __init__(self, specs: dict[str, tuple[FieldSpec, ...]], name_references: NameReferences = ()) -> None:
        self.specs = specs
        self.name_references = name_references
        self.reference_paths: dict[Gvk, PathTree] = {}
        self._selected_specs: dict[tuple[str, Gvk], list[FieldSpec]] = {}

    def get_specs(self, transformer: str) -> tuple[FieldSpec, ...]:
        return self.specs.get(transformer, ())

    def select_specs(self, transformer: str, gvk: Gvk) -> list[FieldSpec]:
        specs = self._selected_specs.get((transformer, gvk))
        if specs is None:
            specs = [spec for spec in self.get_specs(transformer) if gvk.is_selected_by(spec.gvk)]
            self._selected_specs[transformer, gvk] = specs
        return specs

    def merge(self, other: TransformerConfig) -> TransformerConfig:
        if other is self or other is EMPTY_CONFIG:
            return self
        if self is EMPTY_CONFIG and other is load_default_config():
            return other
        if other is load_default_config() and self in _DEFAULT_CONFIGS:
            return self
        return self.merge_specs(other)

    def merge_specs(self, other: TransformerConfig) -> TransformerConfig:
        names = {**self.specs, **other.specs}
        specs = {
            name: tuple(sort_field_specs(merge_field_specs(self.get_specs(name), other.get_specs(name))))
            for name in names
        }
        return TransformerConfig(specs, _merge_references(self.name_references, other.name_references))


def _merge_references(old: NameReferences, new: NameReferences) -> NameReferences:
    specs_by_target = {target: list(specs) for target, specs in old}
    for target, specs in new:
        specs_by_target[target] = merge_field_specs(specs_by_target.get(target, ()), specs)
    by_kind = sorted(specs_by_target.items(), key=lambda pair: build_order_key(pair[0]))
    return tuple((target, tuple(sort_field_specs(specs))) for target, specs in by_kind)


EMPTY_CONFIG: Final = TransformerConfig({})
_DEFAULT_CONFIGS: Final[set[TransformerConfig]] = set()


@lru_cache(1)
def load_default_config() -> TransformerConfig:
    # Read by path: importing importlib.resources takes longer than many a build.
    table = json.loads(Path(__file__).with_name("data").joinpath("fieldspecs.json").read_text("utf-8"))
    references = tuple((Gvk(*target), tuple(map(_read_table_row, rows))) for target, rows in table.pop("nameReference"))
    unsorted_config = TransformerConfig(
        {name: tuple(map(_read_table_row, rows)) for name, rows in table.items()}, references
    )
    config = EMPTY_CONFIG.merge_specs(unsorted_config)
    _DEFAULT_CONFIGS.add(config)
    return config


def _read_table_row(row: list[Any]) -> FieldSpec:
    path, kind, version, group, create = (row + ["", "", "", "", 0][len(row) :])[:5]
    return FieldSpec(path, Gvk(group, version, kind), bool(create))


def read_config(text: bytes, file: str) -> TransformerConfig:
    reject_yaml_version(text, file)
    try:
        value = read_yaml(cut_first_document(text), dialect=YamlDialect.KUSTOMIZE, where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    try:
        fields = validate_fields(value or {}, _CONFIG_SCHEMA, file)
    except RenderError as error:
        raise set_line_from_text(error, text) from None
    specs = {
        name: tuple(sort_field_specs(map(read_field_spec, fields[name])))
        for name in TRANSFORMER_NAMES
        if fields.get(name)
    }
    references = [
        (read_field_spec(reference).gvk, tuple(map(read_field_spec, reference.get("fieldSpecs") or ())))
        for reference in fields.get("nameReference") or ()
    ]
    return TransformerConfig(specs, _merge_references((), tuple(references)))
