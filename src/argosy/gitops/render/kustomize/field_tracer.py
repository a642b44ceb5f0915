"""Traces every field through a build. In: resources after each transformer. Out: origins by key.

Never: runs in a build unless origins are requested.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application.step_results import FieldOrigin
from argosy.gitops.render.field_origins import (
    FieldAuthor,
    OriginNode,
    trace_changed_value,
    trace_document,
    trace_new_value,
)
from argosy.gitops.render.kustomize.changed_field_lines import (
    IDENTITY_FIELDS,
    EntriesAuthor,
    OriginMap,
    OriginMapAuthor,
    PatchAuthor,
    build_operations_author,
    find_editable_line,
)
from argosy.gitops.render.kustomize.error_lines import (
    APPLICATION_LOCATION,
    KustomizationPath,
    find_field_line,
    find_kind_list_items,
    list_documents_and_items,
    resolve_deprecated_path,
)
from argosy.gitops.render.kustomize.patches import read_patch_documents
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.resource_map import KustomizeResources
from argosy.gitops.render.kustomize.source_and_remote_trees import split_display_path
from argosy.kube.objects.field_lines import FieldLines, LocatedNode
from argosy.kube.resource_key import ResourceKey

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.kustomization_build_state import KustomizationLevel

FindAuthor = Callable[[KustomizeResource], FieldAuthor | None]
_PATCH_FIELDS: Final = ("patches", "patchesJson6902", "patchesStrategicMerge")
_PATCH_FIELD_PATHS: Final = tuple((patch_field,) for patch_field in _PATCH_FIELDS)


class _TracedResource(NamedTuple):
    """A resource (kept so that its id() stays unique), its manifest after the last step, and its origins."""

    resource: KustomizeResource
    manifest: Any
    tree: OriginNode


class FieldTracer:
    def __init__(self) -> None:
        self._traced: dict[int, _TracedResource] = {}
        self._lines: dict[str, FieldLines] = {}
        self.origin_trees: dict[ResourceKey, OriginNode] = {}

    def trace_file(self, text: bytes, file: str, resources: Sequence[KustomizeResource]) -> None:
        """Trace resources as read from a file."""
        url, _, path = split_display_path(file)
        marked_documents = [
            document
            for document in list_documents_and_items(text)
            if document.children and find_kind_list_items(document) is None
        ]
        for index, resource in enumerate(resources):
            if len(marked_documents) == len(resources):
                self._record(resource, trace_document(marked_documents[index], path, url))
            else:  # JSON with escapes that YAML does not have
                self._record(resource, trace_new_value(resource.manifest, FieldAuthor(FieldOrigin(path, 1, url))))

    def trace_step(
        self, level: KustomizationLevel, resources: Sequence[KustomizeResource], plugin: KustomizeResource | None = None
    ) -> None:
        """Attribute changed fields to the current entry, or to a transformer plug-in."""
        find_author: FindAuthor | None = None
        for resource in resources:
            traced_resource = self._traced.get(id(resource))
            is_same = traced_resource is not None and traced_resource.manifest == resource.manifest
            if is_same and level.current_path[:1] not in _PATCH_FIELD_PATHS:
                continue
            find_author = find_author or self._build_author(level, resources, plugin)
            author = find_author(resource)
            if is_same and not (author and author.is_exact):
                continue
            if traced_resource is None:
                self._record(resource, trace_new_value(resource.manifest, author))
            else:
                self._record(
                    resource,
                    trace_changed_value(traced_resource.manifest, traced_resource.tree, resource.manifest, author),
                )

    def finish(self, resources: Iterable[KustomizeResource]) -> None:
        """Keep the origins of fields that the end of a build changes, such as name references."""
        for resource in resources:
            traced_resource = self._traced.get(id(resource))
            gvk, manifest = resource.gvk, resource.manifest
            url, _, path = split_display_path(resource.file)
            tree = (
                trace_changed_value(*traced_resource[1:], manifest, None)
                if traced_resource
                else trace_new_value(manifest, FieldAuthor(FieldOrigin(path, 0, url)))
            )
            self.origin_trees[ResourceKey(gvk.group, gvk.kind, resource.namespace, resource.name)] = tree

    def _record(self, resource: KustomizeResource, tree: OriginNode) -> None:
        self._traced[id(resource)] = _TracedResource(resource, copy.deepcopy(resource.manifest), tree)

    def _build_author(
        self, level: KustomizationLevel, resources: Sequence[KustomizeResource], plugin: KustomizeResource | None
    ) -> FindAuthor:
        try:
            return self._build_plugin_author(level, plugin) if plugin else self._build_entry_author(level, resources)
        except UserError:  # empty text, or a file that the build did not need
            return _build_constant_author(
                FieldAuthor(
                    _build_origin(level.file, find_field_line(self._load_lines(level, level.file), level.current_path))
                )
            )

    def _build_plugin_author(self, level: KustomizationLevel, plugin: KustomizeResource) -> FindAuthor:
        if plugin.file == level.file:
            return _build_constant_author(
                FieldAuthor(
                    _build_origin(level.file, find_field_line(self._load_lines(level, level.file), level.current_path))
                )
            )
        identity = plugin.manifest.get("kind"), plugin.name
        for document in list_documents_and_items(level.build.trees.read_file(plugin.file)):
            if (document.read_text("kind"), document.read_text("metadata", "name")) == identity:
                return _build_constant_author(FieldAuthor(_build_origin(plugin.file, document.line)))
        return _build_constant_author(FieldAuthor(_build_origin(plugin.file, 1)))

    def _build_entry_author(self, level: KustomizationLevel, resources: Sequence[KustomizeResource]) -> FindAuthor:
        entry_path = level.find_path_in_file()
        lines = self._load_lines(level, level.file)
        if entry_path is None or not lines.documents:
            return _build_constant_author(
                FieldAuthor(FieldOrigin(APPLICATION_LOCATION) if entry_path is None else _build_origin(level.file, 1))
            )
        if entry_path[0] in _PATCH_FIELDS:
            return self._build_patch_author(level, entry_path, lines, resources)
        document = lines.documents[0]
        entry, steps = document.find_deepest(resolve_deprecated_path(document, entry_path))
        if entry_path[0] in ("configMapGenerator", "secretGenerator") and steps == len(entry_path):
            return _build_constant_author(self._build_generator_author(level, entry, document))
        if entry_path[0] in ("labels", "commonLabels", "commonAnnotations"):
            pairs = entry.find_field("pairs") or entry if entry_path[0] == "labels" else entry
            overrides = (
                {}
                if entry_path[0] == "labels"
                else _list_override_origins(level.get_current_entry(), level.file_fields.get(str(entry_path[0])) or {})
            )
            return _build_constant_author(
                EntriesAuthor(
                    _build_origin(level.file, entry.line), {**_list_entry_origins(pairs, level.file), **overrides}
                )
            )
        return _build_constant_author(FieldAuthor(_build_origin(level.file, find_editable_line(entry))))

    def _build_patch_author(
        self,
        level: KustomizationLevel,
        entry_path: KustomizationPath,
        lines: FieldLines,
        resources: Sequence[KustomizeResource],
    ) -> FindAuthor:
        entry = level.get_current_entry()
        path, text = (entry.get("path"), entry.get("patch")) if isinstance(entry, dict) else (entry, None)
        if isinstance(entry, str) and "\n" in entry:
            path, text = None, entry
        if path:
            file = level.format_path(path)
            text = level.build.trees.read_file(file)
            documents = self._load_lines(level, file).documents
        else:
            text = (text or "").strip().encode()
            file, documents = (
                level.file,
                lines.list_embedded_documents((*entry_path, "patch") if isinstance(entry, dict) else entry_path),
            )
        values = read_patch_documents(text, file)
        fallback = FieldAuthor(_build_origin(level.file, find_field_line(lines, entry_path)))
        authors = [(value, _build_document_author(value, marked, file)) for value, marked in zip(values, documents)]
        target = entry.get("target") if isinstance(entry, dict) else None
        if target:
            selected_ids = {id(selected) for selected in _select_resources(resources, target)}
            return lambda resource: authors[0][1] if authors and id(resource) in selected_ids else fallback
        return lambda resource: next((author for value, author in authors if _is_patch_for(value, resource)), fallback)

    def _build_generator_author(
        self, level: KustomizationLevel, entry: LocatedNode, document: LocatedNode
    ) -> FieldAuthor:
        file, data = level.file, dict(self._list_data_origins(level, entry))
        shared_options, own_options = (
            _list_option_origins(item, file)
            for item in (document.find_field("generatorOptions"), entry.find_field("options"))
        )
        name, namespace = (
            _build_origin(file, (entry.find_field(item) or entry).line) for item in ("name", "namespace")
        )
        metadata_maps: dict[str, OriginMap] = {
            part: {**shared_options.get(part, {}), **own_options.get(part, {})} for part in ("labels", "annotations")
        }
        kind = _build_origin(file, (entry.find_field("type") or entry).line)
        fields = {
            "metadata": {"name": name, "namespace": namespace, **metadata_maps},
            "data": data,
            "binaryData": data,
            "type": kind,
        }
        return OriginMapAuthor(_build_origin(file, entry.line), fields)

    def _list_data_origins(self, level: KustomizationLevel, entry: LocatedNode) -> Iterator[tuple[str, FieldOrigin]]:
        for item in filter(_has_text, _list_elements(entry, "envs", "env")):
            file = level.format_path(item.text)
            for line_number, line in enumerate(
                level.build.trees.read_file(file).decode("utf-8", "replace").split("\n"), 1
            ):
                yield line.lstrip("\ufeff \t").partition("=")[0], _build_origin(file, line_number)
        for item in _list_elements(entry, "literals"):
            yield item.text.partition("=")[0], _build_origin(level.file, item.line)
        for item in _list_elements(entry, "files"):
            key, separator, path = item.text.partition("=")
            key, path = (key, path) if separator else (item.text.rpartition("/")[2], item.text)
            yield key, _build_origin(level.format_path(path), 1)

    def _load_lines(self, level: KustomizationLevel, file: str) -> FieldLines:
        lines = self._lines.get(file)
        if lines is None:
            lines = self._lines[file] = FieldLines(level.build.trees.read_file(file).decode("utf-8", "replace"))
        return lines


def _build_constant_author(author: FieldAuthor) -> FindAuthor:
    return lambda resource: author


def _build_origin(file: str, line: int) -> FieldOrigin:
    url, _, path = split_display_path(file)
    return FieldOrigin(path, line, url)


def _list_entry_origins(marked: LocatedNode, file: str) -> dict[str, FieldOrigin]:
    children = marked.children if isinstance(marked.children, dict) else {}
    return {name: _build_origin(file, child.line) for name, child in children.items()}


def _list_override_origins(current: dict[str, str], file_values: dict[str, str]) -> dict[str, FieldOrigin]:
    """Return the entries that an Application sets."""
    return {
        name: FieldOrigin(APPLICATION_LOCATION) for name, value in current.items() if file_values.get(name) != value
    }


def _list_option_origins(marked: LocatedNode | None, file: str) -> dict[str, dict[str, FieldOrigin]]:
    parts = {name: marked.find_field(name) for name in ("labels", "annotations")} if marked else {}
    return {name: _list_entry_origins(part, file) for name, part in parts.items() if part}


def _has_text(marked: LocatedNode) -> bool:
    return bool(marked.text)


def _list_elements(entry: LocatedNode, *names: str) -> Iterator[LocatedNode]:
    for field in filter(None, map(entry.find_field, names)):
        yield from field.children if isinstance(field.children, list) else [field]


def _build_document_author(value: Any, marked: LocatedNode, file: str) -> FieldAuthor:
    if isinstance(value, list):
        return build_operations_author(value, marked, lambda line: _build_origin(file, line))
    return PatchAuthor(value, marked, lambda line: _build_origin(file, line), identity_names=IDENTITY_FIELDS)


def _select_resources(candidates: Iterable[KustomizeResource], target: dict[str, Any]) -> list[KustomizeResource]:
    resources = KustomizeResources()
    resources.items = list(candidates)
    return resources.select(target, "")


def _is_patch_for(patch: Any, resource: KustomizeResource) -> bool:
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    identity = (patch.get("kind"), metadata.get("name")) if isinstance(metadata, dict) else None
    return any((id.gvk.kind, id.name) == identity for id in resource.list_ids())
