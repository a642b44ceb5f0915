"""Traces the fields of rendered manifests to files and lines. In: files. Out: origins by key and JSON pointer.

Never: computes an origin before it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from argosy.gitops.application.step_results import FieldOrigin
from argosy.kube.objects.field_lines import FieldLines, LocatedNode
from argosy.kube.resource_key import ResourceKey, split_api_version

_MAX_DEPTH = 120


class OriginNode:
    """The origin of a value, and of the fields or elements in it."""

    __slots__ = ("children", "origin")

    def __init__(self, origin: FieldOrigin, children: dict[str, OriginNode] | list[OriginNode] | None = None) -> None:
        self.origin = origin
        self.children = children

    def find_origin(self, pointer: str) -> FieldOrigin:
        """Return the origin of the field at a JSON pointer, or of its nearest parent that has one."""
        node = self
        for step in pointer.split("/")[1:]:
            child = node.find_child(step.replace("~1", "/").replace("~0", "~"))
            if child is None:
                break
            node = child
        return node.origin

    def find_child(self, name: str) -> OriginNode | None:
        if isinstance(self.children, dict):
            return self.children.get(name)
        if isinstance(self.children, list) and name.isdecimal() and int(name) < len(self.children):
            return self.children[int(name)]
        return None


OriginTrees = Mapping[ResourceKey, OriginNode]


class NoOrigins:
    """Implements `FieldOrigins` for manifests whose origins are not known."""

    def find(self, key: ResourceKey, pointer: str) -> FieldOrigin | None:
        return None


class LazyOrigins:
    """Implements `FieldOrigins`, computed on first use. To pickle it, pass a partial of a module function."""

    def __init__(self, trace_origins: Callable[[], OriginTrees]) -> None:
        self._trace_origins = trace_origins
        self._origin_trees: OriginTrees | None = None

    def find(self, key: ResourceKey, pointer: str) -> FieldOrigin | None:
        if self._origin_trees is None:
            self._origin_trees = self._trace_origins()
        # A manifest without a namespace gets the destination's namespace later.
        node = self._origin_trees.get(key) or self._origin_trees.get(key._replace(namespace=""))
        return node.find_origin(pointer) if node else None

    def __reduce__(self) -> tuple[type[LazyOrigins], tuple[Callable[[], OriginTrees]]]:
        return LazyOrigins, (self._trace_origins,)


def trace_documents(files: Iterable[tuple[str, bytes]], *, repository: str = "") -> dict[ResourceKey, OriginNode]:
    """Trace plain files, given by name and content; Lists are flattened."""
    origin_trees: dict[ResourceKey, OriginNode] = {}
    for file, text in files:
        for document in FieldLines(text.decode("utf-8", "replace")).documents:
            for manifest, kind, api_version in _iterate_manifests(document):
                origin_trees[_build_key(manifest, kind, api_version)] = trace_document(manifest, file, repository)
    return origin_trees


def _iterate_manifests(
    marked: LocatedNode, kind: str = "", api_version: str = "", depth: int = 0
) -> Iterator[tuple[LocatedNode, str, str]]:
    kind, api_version = marked.read_text("kind") or kind, marked.read_text("apiVersion") or api_version
    items = marked.find_field("items")
    if items is None or not isinstance(items.children, list):
        if isinstance(marked.children, dict):
            yield marked, kind, api_version
    elif depth < _MAX_DEPTH:
        for item in items.children:
            yield from _iterate_manifests(item, kind.removesuffix("List"), api_version, depth + 1)


def _build_key(manifest: LocatedNode, kind: str, api_version: str) -> ResourceKey:
    group, _ = split_api_version(api_version)
    return ResourceKey(group, kind, manifest.read_text("metadata", "namespace"), manifest.read_text("metadata", "name"))


def trace_document(marked: LocatedNode, file: str, repository: str = "", depth: int = 0) -> OriginNode:
    """Trace a document as written in its file."""
    node = OriginNode(FieldOrigin(file, marked.line, repository))
    if depth > _MAX_DEPTH:
        return node
    if isinstance(marked.children, dict):
        node.children = {
            name: trace_document(child, file, repository, depth + 1) for name, child in marked.children.items()
        }
    elif isinstance(marked.children, list):
        node.children = [trace_document(child, file, repository, depth + 1) for child in marked.children]
    return node


class FieldAuthor:
    """Attributes a change to an origin: this class attributes all of it to one. None as an author keeps old origins."""

    __slots__ = ("is_exact", "origin")

    def __init__(self, origin: FieldOrigin, *, is_exact: bool = False) -> None:
        self.origin = origin
        self.is_exact = is_exact  # it names every field that it sets, so it also owns unchanged fields

    def for_field(self, name: str, value: Any) -> FieldAuthor:
        """Return the author of a field that now has this value."""
        return self

    def for_element(self, index: int, value: Any) -> FieldAuthor:
        return self


def trace_new_value(
    value: Any, author: FieldAuthor | None, parent: OriginNode | None = None, replaced: FieldOrigin | None = None
) -> OriginNode:
    """Trace a new value; `parent` holds it, `replaced` is the origin of the value that it replaces."""
    origin = author.origin if author else parent.origin if parent else FieldOrigin("")
    if author and replaced and replaced != origin:
        origin = FieldOrigin(origin.file, origin.line, origin.repository, replaced)
    node = OriginNode(origin)
    if type(value) is dict:
        node.children = {
            name: trace_new_value(child, author and author.for_field(name, child), node)
            for name, child in value.items()
        }
    elif type(value) is list:
        node.children = [
            trace_new_value(child, author and author.for_element(index, child), node)
            for index, child in enumerate(value)
        ]
    return node


def trace_changed_value(before: Any, tree: OriginNode, after: Any, author: FieldAuthor | None) -> OriginNode:
    """Trace `after`: unchanged values keep their origin; values that changed or were set again get the author's."""
    if type(before) is type(after) and before == after and not (author and author.is_exact):
        return tree
    if type(before) is dict and type(after) is dict and isinstance(tree.children, dict):
        fields: dict[str, OriginNode] = {}
        for name, value in after.items():
            child, child_author = tree.children.get(name), author and author.for_field(name, value)
            if child is not None and name in before:
                fields[name] = trace_changed_value(before[name], child, value, child_author)
            else:
                fields[name] = trace_new_value(value, child_author, tree)
        return OriginNode(tree.origin, fields)
    if type(before) is list and type(after) is list and isinstance(tree.children, list):
        pairs = zip(after, _align_elements(before, after))
        elements = [
            _trace_element(before, tree, index, element, old_index, author)
            for index, (element, old_index) in enumerate(pairs)
        ]
        return OriginNode(tree.origin, elements)
    if author is None and type(after) not in (dict, list):
        return tree
    return trace_new_value(after, author, tree, tree.origin)


def _trace_element(
    before: list[Any], tree: OriginNode, index: int, value: Any, old_index: int | None, author: FieldAuthor | None
) -> OriginNode:
    element_author = author and author.for_element(index, value)
    if old_index is None or not isinstance(tree.children, list) or old_index >= len(tree.children):
        return trace_new_value(value, element_author, tree)
    return trace_changed_value(before[old_index], tree.children[old_index], value, element_author)


def _align_elements(before: list[Any], after: list[Any]) -> list[int | None]:
    """Return the old index of each new element: equal elements first, then equal merge keys, then the same index."""
    remaining = dict(enumerate(before))
    old_indexes: list[int | None] = [None] * len(after)
    for match in (_is_equal_at_same_index, _is_equal, _has_same_merge_key):
        for index, element in enumerate(after):
            if old_indexes[index] is None:
                old_index = next(
                    (old_index for old_index, old in remaining.items() if match(old_index, old, index, element)), None
                )
                if old_index is not None:
                    old_indexes[index] = old_index
                    del remaining[old_index]
    if len(before) == len(after):
        for index in [index for index, old_index in enumerate(old_indexes) if old_index is None and index in remaining]:
            old_indexes[index] = index
    return old_indexes


def _is_equal_at_same_index(old_index: int, old: Any, index: int, new: Any) -> bool:
    return old_index == index and type(old) is type(new) and bool(old == new)


def _is_equal(old_index: int, old: Any, index: int, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


def _has_same_merge_key(old_index: int, old: Any, index: int, new: Any) -> bool:
    if type(old) is not dict or type(new) is not dict:
        return False
    for key in MERGE_KEY_FIELDS:
        if key in old and key in new:
            return bool(old[key] == new[key])
    return False


MERGE_KEY_FIELDS = (
    "name",
    "mountPath",
    "devicePath",
    "containerPort",
    "port",
    "key",
    "ip",
    "topologyKey",
    "uid",
    "type",
)
