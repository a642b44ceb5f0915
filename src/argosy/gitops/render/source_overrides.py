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
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.tree_paths import located
from argosy.kube.objects import load

_FOR_TOOLS: Final = ("helm", "kustomize", "directory", "plugin")


def overridden(tree: Tree, folder: str, source: Source, app_name: str, notes: list[str] | None = None) -> Source:
    """Return the source with its override files applied; `notes` receives a warning for each unknown field."""
    names = [".argocd-source.yaml"]
    if app_name and "/" not in app_name:
        names.append(f".argocd-source-{app_name}.yaml")
    lead = f"{folder}/" if folder else ""
    for name in names:
        source = _with_file(tree, lead + name, source, [] if notes is None else notes)
    return source


def _with_file(tree: Tree, file: str, source: Source, notes: list[str]) -> Source:
    if tree.entry(file) is None:
        return source
    place, kind = located(tree, file, file)
    if kind != "file":
        return source
    try:
        given = load(tree.read(place), where=file)
        if given is None:
            return source
        if not isinstance(given, Mapping):
            raise RenderError("must be a mapping with the fields helm, kustomize, directory or plugin", where=file)
        notes += _unknown(given, tree.read(place), file)
        blocks = {name: given[name] for name in _FOR_TOOLS if name in given}
        found = read_source(_merged(source.wire, blocks), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=file, line=error.line) from error
    changed: dict[str, Any] = {name: getattr(found, name) for name in blocks}
    return replace(source, wire=found.wire, **changed)


def _unknown(given: Mapping[str, Any], text: bytes, file: str) -> Iterator[str]:
    from argosy.gitops.application.unknown_fields import OVERRIDES, SOURCE, unknown_fields
    from argosy.kube.objects.field_lines import Lines

    for each in unknown_fields(given, OVERRIDES):
        line = Lines(text.decode("utf-8", "replace")).of_field(0, each.path)
        kept = len(each.path) == 1 and each.path[0] in SOURCE
        sentence = f"{each.text} cannot be overridden in this file, and is ignored" if kept else each.sentence
        yield f"{file}:{line}: {sentence}"


def _merged(old: Any, patch: Any) -> Any:
    """argo: a JSON merge patch, except that null keeps the existing value."""
    if not isinstance(patch, Mapping):
        return old if patch is None else patch
    fields = dict(old) if isinstance(old, Mapping) else {}
    for name, value in patch.items():
        fields[name] = _merged(fields.get(name), value)
    return {name: value for name, value in fields.items() if value is not None}
