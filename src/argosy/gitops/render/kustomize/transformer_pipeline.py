"""Runs the transformers of one kustomization in kustomize's fixed order. In: its fields. Out: changed resources.

Never: runs a transformer twice, or one that is not configured.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.error_lines import prepend_path
from argosy.gitops.render.kustomize.field_spec_traversal import FieldSpec, merge_field_specs, read_field_spec
from argosy.gitops.render.kustomize.images import set_image
from argosy.gitops.render.kustomize.kustomization_file import cut_first_document
from argosy.gitops.render.kustomize.kustomization_schema import REPLACEMENT, validate_fields
from argosy.gitops.render.kustomize.patches import (
    apply_json_patch,
    apply_patch,
    apply_strategic_merges,
    read_json_patch,
    read_strategic_patches,
    select_targets,
)
from argosy.gitops.render.kustomize.replacements import apply_replacement_values
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.resource_map import KustomizeResources
from argosy.gitops.render.kustomize.transformer_config import TransformerConfig
from argosy.gitops.render.kustomize.transformers import (
    add_affixes,
    build_spec_selector,
    set_metadata_entries,
    set_namespace,
    set_replicas,
)

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.kustomization_build_state import AccumulatedResources, KustomizationLevel

_METADATA_LABELS_SPEC: Final = FieldSpec("metadata/labels", create=True)


def run_transformers(level: KustomizationLevel, accumulated: AccumulatedResources) -> None:
    fields, resources, config, record_transformer = (
        level.kustomization.fields,
        accumulated.resources,
        accumulated.config,
        level.record_transformer,
    )
    for text in level.iterate_entries("patchesStrategicMerge"):
        apply_strategic_merge_entry(level, resources, text)
        level.trace_step(accumulated)
    if fields.get("patchesStrategicMerge"):
        record_transformer(accumulated, "PatchStrategicMergeTransformer")  # k8s: they are one transformer
    for patch in level.iterate_entries("patches"):
        apply_patch_entry(level, resources, patch)
        record_transformer(accumulated, "PatchTransformer")
    if namespace := fields.get("namespace"):
        level.current_path = ("namespace",)
        set_namespace(resources, namespace, lambda gvk: config.select_specs("namespace", gvk))
        record_transformer(accumulated, "NamespaceTransformer")
    if prefix := fields.get("namePrefix"):
        level.current_path = ("namePrefix",)
        add_affixes(resources, prefix, "", lambda gvk: config.select_specs("namePrefix", gvk))
        record_transformer(accumulated, "PrefixTransformer")
    if suffix := fields.get("nameSuffix"):
        level.current_path = ("nameSuffix",)
        add_affixes(resources, "", suffix, lambda gvk: config.select_specs("nameSuffix", gvk))
        record_transformer(accumulated, "SuffixTransformer")
    _set_labels(level, accumulated)
    for patch in level.iterate_entries("patchesJson6902"):
        apply_json_patch_entry(level, resources, patch)
        record_transformer(accumulated, "PatchJson6902Transformer")
    for replica in level.iterate_entries("replicas"):
        set_replicas(
            resources, replica.get("name") or "", replica.get("count") or 0, config.get_specs("replicas"), level.file
        )
        record_transformer(accumulated, "ReplicaCountTransformer")
    for image in level.iterate_entries("images"):
        set_image(resources, image, lambda gvk: config.select_specs("images", gvk), level.file)
        record_transformer(accumulated, "ImageTagTransformer")
    for replacement in level.iterate_entries("replacements"):
        apply_replacement(level, resources, replacement)
        level.trace_step(accumulated)
    if fields.get("replacements"):
        record_transformer(accumulated, "ReplacementTransformer")


def _set_labels(level: KustomizationLevel, accumulated: AccumulatedResources) -> None:
    fields, resources, config = level.kustomization.fields, accumulated.resources, accumulated.config
    for label in level.iterate_entries("labels"):
        set_metadata_entries(resources, label.get("pairs") or {}, build_spec_selector(_list_label_specs(label, config)))
        level.record_transformer(accumulated, "LabelTransformer")
    for field, kind in (("commonLabels", "LabelTransformer"), ("commonAnnotations", "AnnotationsTransformer")):
        entries = fields.get(field)
        # k8s: if there are labels, commonLabels are a transformer of their own, even if they are empty.
        if entries or (field == "commonLabels" and fields.get("labels")):
            level.current_path = (field,)
            set_metadata_entries(resources, entries or {}, partial(config.select_specs, field))
            level.record_transformer(accumulated, kind)


def _list_label_specs(label: dict[str, Any], config: TransformerConfig) -> list[FieldSpec]:
    specs = [read_field_spec(item) for item in label.get("fields") or ()]
    if label.get("includeSelectors"):
        return merge_field_specs(specs, config.get_specs("commonLabels"))
    if label.get("includeTemplates"):
        specs = merge_field_specs(specs, config.get_specs("templateLabels"))
    return merge_field_specs(merge_field_specs(specs, config.get_specs("labels")), [_METADATA_LABELS_SPEC])


def apply_patch_entry(level: KustomizationLevel, resources: KustomizeResources, patch: dict[str, Any]) -> None:
    text, path = patch.get("patch"), patch.get("path")
    if bool(text) == bool(path):
        raise RenderError("an entry of patches needs either `patch` or `path`: set one of them", where=level.file)
    data = text.strip().encode() if text else _read_path(level, path or "")
    apply_patch(resources, patch, data, level.build.find_schema, _format_path(level, path) if path else level.file)


def _format_path(level: KustomizationLevel, path: str) -> str:
    return level.format_path(path)


def _read_path(level: KustomizationLevel, path: str) -> bytes:
    entry, level.current_path = level.current_path, (*level.current_path, "path")
    data = level.read(path)
    level.current_path = entry
    return data


def apply_strategic_merge_entry(level: KustomizationLevel, resources: KustomizeResources, text: str) -> None:
    if "\n" in text or text.lstrip()[:1] == "{":
        patches = read_strategic_patches(text.encode(), level.file, as_texts=True)
        apply_strategic_merges(resources, patches, level.build.find_schema, level.file)
        return
    where = _format_path(level, text)
    apply_strategic_merges(
        resources, read_strategic_patches(level.read(text), where, as_texts=True), level.build.find_schema, where
    )


def apply_json_patch_entry(
    level: KustomizationLevel, resources: KustomizeResources, patch: dict[str, Any], text: str = ""
) -> None:
    target = patch.get("target")
    if not target or not target.get("name"):
        raise RenderError("an entry of patchesJson6902 needs a target with a name: add it", where=level.file)
    text = patch.get("patch") or text
    path = patch.get("path")
    if bool(text) == bool(path):
        raise RenderError("an entry of patchesJson6902 needs either `patch` or `path`", where=level.file)
    where = _format_path(level, path) if path else level.file
    operations = read_json_patch(text.encode() if text else _read_path(level, path or ""), where)
    apply_json_patch(select_targets(resources, target), operations, where)


def apply_replacement(level: KustomizationLevel, resources: KustomizeResources, replacement: dict[str, Any]) -> None:
    path = replacement.get("path")
    if not path:
        apply_replacement_values(resources, replacement, level.file)
        return
    if replacement.get("source") or replacement.get("targets"):
        message = "a replacement has a path and a source or targets: keep one of them"
        raise RenderError(message, where=level.file)
    where, documents = (
        level.format_path(path),
        read_strategic_patches(cut_first_document(_read_path(level, path)), level.format_path(path)),
    )
    for number, document in enumerate(documents):
        for index, item in enumerate(document) if isinstance(document, list) else [((), document)]:
            try:
                apply_replacement_values(resources, validate_fields(item, REPLACEMENT, where), where)
            except RenderError as error:
                raise prepend_path(error, *([index] if isinstance(index, int) else []), document_index=number) from None


def add_generated(resources: KustomizeResources, generated: KustomizeResource, where: str) -> None:
    """Add a generated resource, or merge it into the resource with the same id."""
    behavior = generated.behavior or "create"
    generated_id = generated.id
    existing = resources.list_by_id(generated_id)
    if not existing:
        if behavior != "create":
            raise RenderError(
                f"{generated_id} does not exist, so {behavior} is impossible: add it, or use create", where=where
            )
        resources.items.append(generated)
        return
    if len(existing) > 1:
        raise RenderError(
            f"{len(existing)} resources have the id {generated_id}: give them different names", where=where
        )
    if behavior == "create":
        raise RenderError(f"{generated_id} already exists: set behavior to merge or replace, or rename it", where=where)
    _merge_generated(existing[0], generated, behavior)


def _merge_generated(old: KustomizeResource, generated: KustomizeResource, behavior: str) -> None:
    before, after = old.manifest, generated.manifest
    if behavior == "merge":  # k8s: other fields of the old one, such as stringData or immutable, are dropped
        for part in ("data", "binaryData"):
            old_entries = before.get(part)
            merged_entries = {**(old_entries if isinstance(old_entries, dict) else {}), **(after.get(part) or {})}
            after[part] = merged_entries
        for part in ("data", "binaryData"):
            if not after[part]:
                del after[part]
    else:
        old.notes.update(generated.notes)
    metadata = dict(after.get("metadata") or {})
    for part in ("labels", "annotations"):
        merged_entries = {**old.get_metadata_map(part), **generated.get_metadata_map(part)}
        if merged_entries:
            metadata[part] = merged_entries
    metadata["name"] = old.name
    metadata.pop("namespace", None)  # no namespace equals `default`
    if old.namespace:
        metadata["namespace"] = old.namespace
    after["metadata"] = metadata
    old.manifest = after
    old.needs_hash = old.needs_hash and generated.needs_hash
    old.aliases = {}
