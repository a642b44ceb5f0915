"""Runs the transformers of one kustomization in kustomize's fixed order. In: its fields. Out: changed resources.

Never: runs a transformer twice, or one that is not configured.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.error_lines import within
from argosy.gitops.render.kustomize.field_spec_config import Config
from argosy.gitops.render.kustomize.field_specs import FieldSpec, merged, spec_of
from argosy.gitops.render.kustomize.images import set_image
from argosy.gitops.render.kustomize.kustomization_fields import REPLACEMENT, shaped
from argosy.gitops.render.kustomize.kustomization_file import first_document
from argosy.gitops.render.kustomize.patches import (
    apply_merges,
    apply_operations,
    apply_patch,
    read_operations,
    read_patches,
    targets_of,
)
from argosy.gitops.render.kustomize.replacements import replace
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.resources import Resources
from argosy.gitops.render.kustomize.transformers import add_affixes, set_entries, set_namespace, set_replicas, specs_of

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.build_level import Accumulated, Level

_LABELS: Final = FieldSpec("metadata/labels", create=True)


def transform(level: Level, into: Accumulated) -> None:
    fields, resources, config, mark = level.kustomization.fields, into.resources, into.config, level.mark
    for text in level.entries("patchesStrategicMerge"):
        merge_patch(level, resources, text)
        level.trace(into)
    if fields.get("patchesStrategicMerge"):
        mark(into, "PatchStrategicMergeTransformer")  # k8s: they are one transformer
    for patch in level.entries("patches"):
        any_patch(level, resources, patch)
        mark(into, "PatchTransformer")
    if namespace := fields.get("namespace"):
        level.at = ("namespace",)
        set_namespace(resources, namespace, lambda gvk: config.selected("namespace", gvk))
        mark(into, "NamespaceTransformer")
    if prefix := fields.get("namePrefix"):
        level.at = ("namePrefix",)
        add_affixes(resources, prefix, "", lambda gvk: config.selected("namePrefix", gvk))
        mark(into, "PrefixTransformer")
    if suffix := fields.get("nameSuffix"):
        level.at = ("nameSuffix",)
        add_affixes(resources, "", suffix, lambda gvk: config.selected("nameSuffix", gvk))
        mark(into, "SuffixTransformer")
    _set_labels(level, into)
    for patch in level.entries("patchesJson6902"):
        json_patch(level, resources, patch)
        mark(into, "PatchJson6902Transformer")
    for replica in level.entries("replicas"):
        set_replicas(resources, replica.get("name") or "", replica.get("count") or 0, config.of("replicas"), level.file)
        mark(into, "ReplicaCountTransformer")
    for image in level.entries("images"):
        set_image(resources, image, lambda gvk: config.selected("images", gvk), level.file)
        mark(into, "ImageTagTransformer")
    for replacement in level.entries("replacements"):
        replaced(level, resources, replacement)
        level.trace(into)
    if fields.get("replacements"):
        mark(into, "ReplacementTransformer")


def _set_labels(level: Level, into: Accumulated) -> None:
    fields, resources, config = level.kustomization.fields, into.resources, into.config
    for label in level.entries("labels"):
        set_entries(resources, label.get("pairs") or {}, specs_of(_label_specs(label, config)))
        level.mark(into, "LabelTransformer")
    for field, kind in (("commonLabels", "LabelTransformer"), ("commonAnnotations", "AnnotationsTransformer")):
        entries = fields.get(field)
        # k8s: if there are labels, commonLabels are a transformer of their own, even if they are empty.
        if entries or (field == "commonLabels" and fields.get("labels")):
            level.at = (field,)
            set_entries(resources, entries or {}, partial(config.selected, field))
            level.mark(into, kind)


def _label_specs(label: dict[str, Any], config: Config) -> list[FieldSpec]:
    specs = [spec_of(each) for each in label.get("fields") or ()]
    if label.get("includeSelectors"):
        return merged(specs, config.of("commonLabels"))
    if label.get("includeTemplates"):
        specs = merged(specs, config.of("templateLabels"))
    return merged(merged(specs, config.of("labels")), [_LABELS])


def any_patch(level: Level, resources: Resources, patch: dict[str, Any]) -> None:
    text, path = patch.get("patch"), patch.get("path")
    if bool(text) == bool(path):
        raise RenderError("an entry of patches needs either `patch` or `path`: set one of them", where=level.file)
    data = text.strip().encode() if text else _read(level, path or "")
    apply_patch(resources, patch, data, level.build.schemas, _file(level, path) if path else level.file)


def _file(level: Level, path: str) -> str:
    return level.name(path)


def _read(level: Level, path: str) -> bytes:
    entry, level.at = level.at, (*level.at, "path")
    data = level.read(path)
    level.at = entry
    return data


def merge_patch(level: Level, resources: Resources, text: str) -> None:
    if "\n" in text or text.lstrip()[:1] == "{":
        patches = read_patches(text.encode(), level.file, as_texts=True)
        apply_merges(resources, patches, level.build.schemas, level.file)
        return
    where = _file(level, text)
    apply_merges(resources, read_patches(level.read(text), where, as_texts=True), level.build.schemas, where)


def json_patch(level: Level, resources: Resources, patch: dict[str, Any], text: str = "") -> None:
    target = patch.get("target")
    if not target or not target.get("name"):
        raise RenderError("an entry of patchesJson6902 needs a target with a name: add it", where=level.file)
    text = patch.get("patch") or text
    path = patch.get("path")
    if bool(text) == bool(path):
        raise RenderError("an entry of patchesJson6902 needs either `patch` or `path`", where=level.file)
    where = _file(level, path) if path else level.file
    operations = read_operations(text.encode() if text else _read(level, path or ""), where)
    apply_operations(targets_of(resources, target), operations, where)


def replaced(level: Level, resources: Resources, given: dict[str, Any]) -> None:
    path = given.get("path")
    if not path:
        replace(resources, given, level.file)
        return
    if given.get("source") or given.get("targets"):
        message = "a replacement has a path and a source or targets: keep one of them"
        raise RenderError(message, where=level.file)
    where, documents = level.name(path), read_patches(first_document(_read(level, path)), level.name(path))
    for number, document in enumerate(documents):
        for place, each in enumerate(document) if isinstance(document, list) else [((), document)]:
            try:
                replace(resources, shaped(each, REPLACEMENT, where), where)
            except RenderError as error:
                raise within(error, *([place] if isinstance(place, int) else []), number=number) from None


def place(resources: Resources, made: Resource, where: str) -> None:
    """Add a generated resource, or merge it into the resource with the same id."""
    behavior = made.behavior or "create"
    mine = made.id
    found = resources.known_as(mine)
    if not found:
        if behavior != "create":
            raise RenderError(f"{mine} does not exist, so {behavior} is impossible: add it, or use create", where=where)
        resources.listed.append(made)
        return
    if len(found) > 1:
        raise RenderError(f"{len(found)} resources have the id {mine}: give them different names", where=where)
    if behavior == "create":
        raise RenderError(f"{mine} already exists: set behavior to merge or replace, or rename it", where=where)
    _supersede(found[0], made, behavior)


def _supersede(old: Resource, made: Resource, behavior: str) -> None:
    before, after = old.manifest, made.manifest
    if behavior == "merge":  # k8s: other fields of the old one, such as stringData or immutable, are dropped
        for part in ("data", "binaryData"):
            known = before.get(part)
            both = {**(known if isinstance(known, dict) else {}), **(after.get(part) or {})}
            after[part] = both
        for part in ("data", "binaryData"):
            if not after[part]:
                del after[part]
    else:
        old.notes.update(made.notes)
    metadata = dict(after.get("metadata") or {})
    for part in ("labels", "annotations"):
        both = {**old.mapping(part), **made.mapping(part)}
        if both:
            metadata[part] = both
    metadata["name"] = old.name
    metadata.pop("namespace", None)  # no namespace equals `default`
    if old.namespace:
        metadata["namespace"] = old.namespace
    after["metadata"] = metadata
    old.manifest = after
    old.wants_hash = old.wants_hash and made.wants_hash
    old.aliases = {}
