"""Applies an Application's `source.kustomize` overrides to a kustomization.

In: the fields of the kustomization that is built. Out: the fields with the overrides. Never: changes its bases.

argo: Argo CD runs `kustomize edit` on the file before the build, so most overrides replace the file's own fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.render.kustomize.images import split_image
from argosy.gitops.render.kustomize.kustomization_file import KustomizationFile
from argosy.gitops.render.kustomize.kustomization_schema import PATCH, validate_fields
from argosy.gitops.render.kustomize.remote_url_parser import looks_remote, parse_remote
from argosy.gitops.render.kustomize.source_and_remote_trees import TreeLocation
from argosy.gitops.render.kustomize.tree_paths import join_path

Fields = dict[str, Any]
Substitute = Callable[[str], str]
_OPTIONS_LOCATION: Final = "source.kustomize"
_KEEP_VALUE: Final = "*"
_IMAGE_PARTS: Final = ("newName", "newTag", "digest")
_GLOB_CHARACTERS: Final = re.compile(r"[*?\[]")


def apply_kustomize_options(
    kustomization: KustomizationFile, options: KustomizeOptions, folder: TreeLocation, substitute: Substitute
) -> KustomizationFile:
    """Return the kustomization with the Application's overrides; `substitute` replaces build variables."""
    simple_fields = {
        "namePrefix": options.name_prefix,
        "nameSuffix": options.name_suffix,
        "namespace": options.namespace,
    }
    fields = {**kustomization.fields, **{name: text for name, text in simple_fields.items() if text}}
    if options.images:
        fields["images"] = _merge_images(fields.get("images") or [], map(substitute, options.images))
    if options.replicas:
        fields["replicas"] = _merge_replicas(fields.get("replicas") or [], options.replicas)
    if options.common_labels:
        _add_labels(fields, options, {name: substitute(value) for name, value in options.common_labels.items()})
    if options.common_annotations:
        substitute_or_keep = substitute if options.common_annotations_envsubst else str
        annotations = {name: substitute_or_keep(value) for name, value in options.common_annotations.items()}
        existing = fields.get("commonAnnotations") or {}
        fields["commonAnnotations"] = _merge_entries(
            existing, _unquote_entries(annotations), options.force_common_annotations, "Annotations"
        )
    if options.patches:
        fields["patches"] = [*(fields.get("patches") or []), *_validate_patches(options.patches)]
    if options.components:
        fields["components"] = _merge_components(fields.get("components") or [], options, folder)
    return kustomization._replace(fields=fields)


def _merge_images(existing: list[Fields], overrides: Iterable[str]) -> list[Fields]:
    # argo: one entry per name, sorted by name.
    image_by_name = {image["name"]: image for image in map(_parse_image, overrides)}
    for old in existing:
        name = old.get("name") or ""
        new = image_by_name.get(name)
        image_by_name[name] = (
            old if new is None else {**new, **{part: old.get(part) or "" for part in _list_kept_parts(new)}}
        )
    cleaned_images = ({**image, **dict.fromkeys(_list_kept_parts(image), "")} for image in image_by_name.values())
    return sorted(cleaned_images, key=lambda image: image.get("name") or "")


def _list_kept_parts(image: Fields) -> list[str]:
    return [part for part in _IMAGE_PARTS if image.get(part) == _KEEP_VALUE]


def _parse_image(text: str) -> Fields:
    """Parse `name=new:tag`, `name=new@digest`, `name=new`, `name:tag` or `name@digest`."""
    name, separator, new = text.partition("=")
    new_name, tag, digest = split_image(new if separator else text)
    if not separator and not tag and not digest:
        message = f"{text!r} does not set a new image: write NAME=NEW:TAG, NAME:TAG or NAME@DIGEST"
        raise RenderError(message, where=f"{_OPTIONS_LOCATION}.images")
    parts = {"newName": new_name if separator else "", "newTag": tag, "digest": digest}
    return {"name": name if separator else new_name, **{part: value for part, value in parts.items() if value}}


def _merge_replicas(existing: list[Fields], overrides: Iterable[tuple[str, int]]) -> list[Fields]:
    replicas_by_name = {replica.get("name") or "": replica for replica in existing}
    for name, count in overrides:
        if not name or "=" in name:
            raise RenderError(
                f"invalid name {name!r} for {count} replicas: correct it", where=f"{_OPTIONS_LOCATION}.replicas"
            )
        replicas_by_name[name] = {"name": name, "count": count}
    return [replicas_by_name[name] for name in sorted(replicas_by_name)]


def _add_labels(fields: Fields, options: KustomizeOptions, labels_to_add: Mapping[str, str]) -> None:
    force, templates = options.force_common_labels, options.label_include_templates
    if not options.label_without_selector:
        if templates:
            message = "labelIncludeTemplates needs labelWithoutSelector: set both, or neither"
            raise RenderError(message, where=_OPTIONS_LOCATION)
        fields["commonLabels"] = _merge_entries(
            fields.get("commonLabels") or {}, _unquote_entries(labels_to_add), force, "Labels"
        )
        return
    remaining = dict(_unquote_entries(labels_to_add))
    labels = [_update_label_entry(label, remaining, force, templates) for label in fields.get("labels") or ()]
    new_entries = [{"pairs": remaining, "includeTemplates": templates}] if remaining else []
    fields["labels"] = [*labels, *new_entries]


def _update_label_entry(label: Fields, remaining: dict[str, str], force: bool, templates: bool) -> Fields:
    """Update the keys that an entry of `labels` already has, and remove them from `remaining`."""
    pairs = label.get("pairs") or {}
    is_same_scope = not label.get("includeSelectors") and bool(label.get("includeTemplates")) == templates
    updated_pairs = {name: remaining.pop(name) for name in list(remaining) if is_same_scope and name in pairs}
    return {**label, "pairs": _merge_entries(pairs, updated_pairs, force, "Labels")} if updated_pairs else label


def _unquote_entries(mapping: Mapping[str, str]) -> dict[str, str]:
    """argo: passed as `name:value`; double quotes around a value are removed."""
    entries: dict[str, str] = {}
    for name, value in mapping.items():
        key, _, text = f"{name}:{value}".partition(":")
        entries[key] = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    return entries


def _merge_entries(
    existing: Mapping[str, str], additions: Mapping[str, str], force: bool, field_suffix: str
) -> dict[str, str]:
    for name in additions if not force else ():
        if name in existing:
            message = f"{name} is already in the kustomization: remove it there, or set forceCommon{field_suffix}"
            raise RenderError(message, where=f"{_OPTIONS_LOCATION}.common{field_suffix}")
    return {**existing, **additions}


def _validate_patches(patches: Iterable[Mapping[str, Any]]) -> Iterator[Fields]:
    for i, patch in enumerate(patches):
        yield validate_fields(dict(patch), PATCH, _OPTIONS_LOCATION, f"patches[{i}]")


def _merge_components(existing: list[str], options: KustomizeOptions, folder: TreeLocation) -> list[str]:
    components = list(existing)
    for text in options.components:
        for component in _list_component_paths(text, folder, options.ignore_missing_components):
            if component not in components:
                components.append(component)
    return components


def _list_component_paths(text: str, folder: TreeLocation, ignore_missing: bool) -> list[str]:
    if looks_remote(text) or parse_remote(text):
        # argo: a remote component counts as missing.
        return [] if ignore_missing else [text]
    where = f"{_OPTIONS_LOCATION}.components"
    paths = [text] if folder.build_tree.locate(folder.path, text, where).kind else []
    if not paths and not ignore_missing:
        paths = _expand_glob(text, folder) if _GLOB_CHARACTERS.search(text) else []
        if not paths:
            message = f"{text} does not exist: correct the path, or set ignoreMissingComponents"
            raise RenderError(message, where=where)
    return paths


def _expand_glob(text: str, folder: TreeLocation) -> list[str]:
    """argo: expand a glob step by step, as `kustomize edit add component` does."""
    paths = [""]
    for step in text.split("/"):
        prefixes = [f"{item}/" if item else "" for item in paths]
        if not _GLOB_CHARACTERS.search(step):
            paths = [f"{item}{step}" for item in prefixes]
            continue
        step_pattern = _compile_glob_step(step)
        tree = folder.build_tree.tree
        paths = [
            f"{item}{entry.name}"
            for item in prefixes
            for entry in tree.list_folder(join_path(folder.path, item, _OPTIONS_LOCATION))
            if step_pattern.fullmatch(entry.name)
        ]
    return [item for item in paths if folder.build_tree.locate(folder.path, item, _OPTIONS_LOCATION).kind]


def _compile_glob_step(step: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*|\?|\[[^]]*\])", step)
    try:
        return re.compile("".join(map(_glob_piece_to_regex, pieces)))
    except re.error:
        raise RenderError(
            f"{step!r} is not a valid glob: close its bracket", where=f"{_OPTIONS_LOCATION}.components"
        ) from None


def _glob_piece_to_regex(text: str) -> str:
    if text in ("*", "?"):
        return "[^/]*" if text == "*" else "[^/]"
    return text if len(text) > 1 and text[0] == "[" and text[-1] == "]" else re.escape(text)
