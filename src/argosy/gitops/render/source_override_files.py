"""Applies the overrides in `.argocd-source.yaml` and `.argocd-source-<app>.yaml` to a source.

In: a tree, the source's folder, the source. Out: the source with the overrides of these files.
Never: changes the repository, path or revision of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application import Source, read_source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.tree_paths import resolve_path
from argosy.kube.objects import read_yaml

_TOOL_BLOCKS: Final = ("helm", "kustomize", "directory", "plugin")


def apply_source_overrides(
    tree: FileTree, folder: str, source: Source, app_name: str, notes: list[str] | None = None
) -> Source:
    """Return the source with its override files applied; `notes` receives a warning for each unknown field."""
    names = [".argocd-source.yaml"]
    if app_name and "/" not in app_name:
        names.append(f".argocd-source-{app_name}.yaml")
    folder_prefix = f"{folder}/" if folder else ""
    for name in names:
        source = _apply_override_file(tree, folder_prefix + name, source, [] if notes is None else notes)
    return source


def _apply_override_file(tree: FileTree, file: str, source: Source, notes: list[str]) -> Source:
    if tree.find_entry(file) is None:
        return source
    resolved_path, kind = resolve_path(tree, file, file)
    if kind != "file":
        return source
    try:
        overrides = read_yaml(tree.read_file(resolved_path), where=file)
        if overrides is None:
            return source
        if not isinstance(overrides, Mapping):
            raise RenderError("must be a mapping with the fields helm, kustomize, directory or plugin", where=file)
        notes += _list_unknown_fields(overrides, tree.read_file(resolved_path), file)
        blocks = {name: overrides[name] for name in _TOOL_BLOCKS if name in overrides}
        merged_source = read_source(_merge_overrides(source.wire, blocks), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=file, line=error.line) from error
    changed_blocks: dict[str, Any] = {name: getattr(merged_source, name) for name in blocks}
    return replace(source, wire=merged_source.wire, **changed_blocks)


def _list_unknown_fields(overrides: Mapping[str, Any], text: bytes, file: str) -> Iterator[str]:
    from argosy.gitops.application.unknown_fields import SOURCE_FIELDS, TOOL_FIELDS, list_unknown_fields
    from argosy.kube.objects.field_lines import FieldLines

    for unknown_field in list_unknown_fields(overrides, TOOL_FIELDS):
        line = FieldLines(text.decode("utf-8", "replace")).find_field_line(0, unknown_field.path)
        is_source_field = len(unknown_field.path) == 1 and unknown_field.path[0] in SOURCE_FIELDS
        sentence = (
            f"{unknown_field.text} cannot be overridden in this file, and is ignored"
            if is_source_field
            else unknown_field.message
        )
        yield f"{file}:{line}: {sentence}"


def _merge_overrides(old: Any, patch: Any) -> Any:
    """argo: a JSON merge patch, except that null keeps the existing value."""
    if not isinstance(patch, Mapping):
        return old if patch is None else patch
    fields = dict(old) if isinstance(old, Mapping) else {}
    for name, value in patch.items():
        fields[name] = _merge_overrides(fields.get(name), value)
    return {name: value for name, value in fields.items() if value is not None}
