"""Finds the line numbers of manifest fields in YAML or JSON text.

In: YAML or JSON text, and the path of a field. Out: line numbers, from 1.
Never: interprets a field; raises for text that is not YAML, where every field is on line 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import yaml

ManifestPath = Sequence[str | int]
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class LocatedNode:
    """A value of a document: its line, its text if it is a scalar, and its children."""

    __slots__ = ("children", "line", "text")

    def __init__(self, line: int, text: str = "") -> None:
        self.line = line
        self.text = text
        self.children: dict[str, LocatedNode] | list[LocatedNode] | None = None

    def find_field(self, name: str) -> LocatedNode | None:
        if not isinstance(self.children, dict):
            return None
        child = self.children.get(name)
        if child is None:  # k8s: Go's JSON decoder matches field names case-insensitively
            lower = name.lower()
            child = next((node for key, node in self.children.items() if key.lower() == lower), None)
        return child

    def find_deepest(self, path: ManifestPath) -> tuple[LocatedNode, int]:
        """Return the deepest existing node on the path, and its depth."""
        node = self
        for depth, step in enumerate(path):
            if isinstance(step, str):
                child = node.find_field(step)
            else:
                items = node.children if isinstance(node.children, list) else []
                child = items[step] if 0 <= step < len(items) else None
            if child is None:
                return node, depth
            node = child
        return node, len(path)

    def read_text(self, *path: str) -> str:
        """Return the text of the scalar at the path; empty if there is none."""
        node, depth = self.find_deepest(path)
        return node.text if depth == len(path) else ""


class FieldLines:
    """Finds lines in one text. Manifests are numbered from 0, in the order of `read_manifests`.

    A path that continues below a string continues in the YAML document inside that string.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def documents(self) -> list[LocatedNode]:
        """All documents except empty ones."""
        try:
            locator = _NodeLocator()
            roots = yaml.compose_all(self._text, Loader=_LOADER)
            return [locator.locate(root, 0) for root in roots if not _is_empty(root)]
        except (yaml.YAMLError, RecursionError):
            return []

    def list_embedded_documents(self, path: ManifestPath) -> list[LocatedNode]:
        """List the documents of the YAML inside a string of the first document, with lines of the whole text."""
        node = self._find_node(path)
        if not isinstance(node, yaml.ScalarNode):
            return []
        try:
            roots = [root for root in yaml.compose_all(node.value, Loader=_LOADER) if not _is_empty(root)]
        except (yaml.YAMLError, RecursionError):
            return []
        if not _is_block(node):  # a quoted string is on one line of the file
            return [_NodeLocator(is_one_line=True).locate(root, int(node.start_mark.line)) for root in roots]
        return [_NodeLocator().locate(root, _find_first_line(node) - 1) for root in roots]

    def _find_node(self, path: ManifestPath) -> Any:
        try:
            node = yaml.compose(self._text, Loader=_LOADER)
        except (yaml.YAMLError, RecursionError):
            return None
        for step in path:
            child = _find_child(node, step)
            if child is None:
                return None
            node = child[1]
        return node

    def find_field_line(self, manifest_index: int, path: ManifestPath) -> int:
        """Return the line of a field's key, or of the deepest existing key on its path."""
        return self._find_lines(manifest_index, path)[0]

    def find_text_line(self, manifest_index: int, path: ManifestPath, line: int) -> int:
        """Convert a line number within the string at this path to a line number of the whole text."""
        _, start, end = self._find_lines(manifest_index, path)
        return min(start + line - 1, end)

    @cached_property
    def _manifest_nodes(self) -> list[Any]:
        try:
            return [
                node for root in yaml.compose_all(self._text, Loader=_LOADER) for node in _list_manifest_nodes(root)
            ]
        except yaml.YAMLError:  # JSON with escapes that YAML does not have
            return []

    def _find_lines(self, manifest_index: int, path: ManifestPath) -> tuple[int, int, int]:
        """Return the line of the deepest existing key on the path, and the first and last line of its value."""
        if not 0 <= manifest_index < len(self._manifest_nodes):
            return 1, 1, 1
        node, lines_above = self._manifest_nodes[manifest_index], 0
        key_line = first_line = node.start_mark.line + 1
        for step in path:
            if isinstance(node, yaml.ScalarNode):
                if not _is_block(node):
                    break  # a quoted string is on one line of the file
                lines_above, node = lines_above + _find_first_line(node) - 1, _compose_embedded(node)
            child = _find_child(node, step)
            if child is None:
                break
            key_node, node = child
            key_line, first_line = lines_above + key_node.start_mark.line + 1, lines_above + _find_first_line(node)
        extra_lines = len(node.value.splitlines()) - 1 if _is_block(node) else 0
        return key_line, first_line, first_line + max(extra_lines, 0)


class DuplicateKey(NamedTuple):
    """A key that occurs again in the same mapping."""

    path: tuple[str, ...]  # the keys from the root to the duplicate, without list indexes
    first_line: int
    line: int


def find_duplicate_keys(text: str) -> list[DuplicateKey]:
    """Find keys that repeat in their mapping; none in text that is not YAML. `<<` may be repeated."""
    open_nodes: list[_OpenNode] = []
    duplicates: list[DuplicateKey] = []
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionEndEvent):
                open_nodes.pop()
                continue
            if not isinstance(event, yaml.NodeEvent):
                continue
            parent = open_nodes[-1] if open_nodes else None
            if parent and isinstance(event, yaml.ScalarEvent) and parent.is_key_next():
                line = event.start_mark.line + 1 if event.start_mark else 1
                first_line = parent.add_key(event.value, line)
                if first_line and event.value != "<<":
                    path = tuple(node.key for node in open_nodes if node.is_mapping)
                    duplicates.append(DuplicateKey(path, first_line, line))
            if parent:
                parent.child_count += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append(_OpenNode(is_mapping=isinstance(event, yaml.MappingStartEvent)))
    except (yaml.YAMLError, UnicodeError):
        return []
    return duplicates


class _OpenNode:
    """A mapping or list whose end event was not read yet."""

    __slots__ = ("child_count", "first_lines", "is_mapping", "key")

    def __init__(self, *, is_mapping: bool) -> None:
        self.is_mapping = is_mapping
        self.child_count = 0  # keys and values, or items, read so far
        self.key = ""
        self.first_lines: dict[str, int] = {}

    def is_key_next(self) -> bool:
        return self.is_mapping and self.child_count % 2 == 0

    def add_key(self, key: str, line: int) -> int:
        """Record a key and return the line of its first occurrence, or 0."""
        first_line = self.first_lines.get(key, 0)
        self.first_lines.setdefault(key, line)
        self.key = key
        return first_line


def _is_empty(node: Any) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null")


class _NodeLocator:
    """Converts PyYAML nodes to LocatedNodes. Aliased nodes stay shared. A field's line is the line of its key."""

    def __init__(self, *, is_one_line: bool = False) -> None:
        self._is_one_line = is_one_line
        self._located: dict[tuple[int, int], LocatedNode] = {}
        self._nodes: list[Any] = []  # keeps nodes alive, so that ids stay unique

    def locate(self, node: Any, lines_above: int, line: int | None = None) -> LocatedNode:
        line = int(node.start_mark.line) if line is None else line
        earlier = self._located.get((id(node), line))
        if earlier is not None:
            return earlier
        located = LocatedNode(lines_above + (1 if self._is_one_line else line + 1))
        self._located[id(node), line] = located
        self._nodes.append(node)
        if isinstance(node, yaml.ScalarNode):
            located.text = node.value
        elif isinstance(node, yaml.SequenceNode):
            located.children = [self.locate(child, lines_above) for child in node.value]
        elif isinstance(node, yaml.MappingNode):
            located.children = children = {}
            merged: list[Any] = []
            for key, value in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                elif isinstance(key, yaml.ScalarNode):
                    children[key.value] = self.locate(value, lines_above, int(key.start_mark.line))
            for child in merged:
                inherited = self.locate(child, lines_above).children
                if isinstance(inherited, dict):
                    children |= {name: value for name, value in inherited.items() if name not in children}
        return located


def _list_manifest_nodes(node: Any) -> Iterator[Any]:
    """List the nodes of the manifests in a document, in reading order."""
    if not isinstance(node, yaml.MappingNode):
        return
    fields = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    kind, items = fields.get("kind"), fields.get("items")
    if kind is not None and str(kind.value).endswith("List") and isinstance(items, yaml.SequenceNode):
        for item in items.value:
            yield from _list_manifest_nodes(item)
    else:
        yield node


def _find_first_line(node: Any) -> int:
    """Return the first line of a node's content; the content of a block scalar starts below its indicator."""
    return int(node.start_mark.line) + (2 if _is_block(node) else 1)


def _is_block(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _compose_embedded(node: Any) -> Any:
    try:
        return yaml.compose(node.value, Loader=_LOADER)
    except yaml.YAMLError:
        return None


def _find_child(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Return the key node and the value node of a path step."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    return None
