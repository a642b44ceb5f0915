"""Finds the line numbers of manifest fields in YAML or JSON text.

In: YAML or JSON text, and the path of a field. Out: line numbers, from 1.
Never: interprets a field; raises for text that is not YAML, where every field is on line 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import yaml

Path = Sequence[str | int]
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Marked:
    """A value of a document: its line, its text if it is a scalar, and its children."""

    __slots__ = ("below", "line", "text")

    def __init__(self, line: int, text: str = "") -> None:
        self.line = line
        self.text = text
        self.below: dict[str, Marked] | list[Marked] | None = None

    def field(self, name: str) -> Marked | None:
        if not isinstance(self.below, dict):
            return None
        found = self.below.get(name)
        if found is None:  # k8s: Go's JSON decoder matches field names case-insensitively
            lower = name.lower()
            found = next((each for known, each in self.below.items() if known.lower() == lower), None)
        return found

    def at(self, path: Path) -> tuple[Marked, int]:
        """Return the deepest existing node on the path, and its depth."""
        here = self
        for count, step in enumerate(path):
            if isinstance(step, str):
                found = here.field(step)
            else:
                listed = here.below if isinstance(here.below, list) else []
                found = listed[step] if 0 <= step < len(listed) else None
            if found is None:
                return here, count
            here = found
        return here, len(path)

    def said(self, *path: str) -> str:
        """Return the text of the scalar at the path; empty if there is none."""
        found, steps = self.at(path)
        return found.text if steps == len(path) else ""


class Lines:
    """Finds lines in one text. Manifests are numbered from 0, in the order of `read_manifests`.

    A path that continues below a string continues in the YAML document inside that string.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def documents(self) -> list[Marked]:
        """All documents except empty ones."""
        try:
            marked = _Marking()
            tops = yaml.compose_all(self._text, Loader=_LOADER)
            return [marked.of(top, 0) for top in tops if not _is_empty(top)]
        except (yaml.YAMLError, RecursionError):
            return []

    def inside(self, path: Path) -> list[Marked]:
        """List the documents of the YAML inside a string of the first document, with lines of the whole text."""
        node = self._walk(path)
        if not isinstance(node, yaml.ScalarNode):
            return []
        try:
            tops = [top for top in yaml.compose_all(node.value, Loader=_LOADER) if not _is_empty(top)]
        except (yaml.YAMLError, RecursionError):
            return []
        if not _is_block(node):  # a quoted string is on one line of the file
            return [_Marking(flat=True).of(top, int(node.start_mark.line)) for top in tops]
        return [_Marking().of(top, _first(node) - 1) for top in tops]

    def _walk(self, path: Path) -> Any:
        try:
            node = yaml.compose(self._text, Loader=_LOADER)
        except (yaml.YAMLError, RecursionError):
            return None
        for step in path:
            found = _step(node, step)
            if found is None:
                return None
            node = found[1]
        return node

    def of_field(self, number: int, path: Path) -> int:
        """Return the line of a field's key, or of the deepest existing key on its path."""
        return self._find(number, path)[0]

    def of_text(self, number: int, path: Path, line: int) -> int:
        """Convert a line number within the string at this path to a line number of the whole text."""
        _, start, end = self._find(number, path)
        return min(start + line - 1, end)

    @cached_property
    def _objects(self) -> list[Any]:
        try:
            return [each for top in yaml.compose_all(self._text, Loader=_LOADER) for each in _objects_in(top)]
        except yaml.YAMLError:  # JSON with escapes that YAML does not have
            return []

    def _find(self, number: int, path: Path) -> tuple[int, int, int]:
        """Return the line of the deepest existing key on the path, and the first and last line of its value."""
        if not 0 <= number < len(self._objects):
            return 1, 1, 1
        node, above = self._objects[number], 0
        name = start = node.start_mark.line + 1
        for step in path:
            if isinstance(node, yaml.ScalarNode):
                if not _is_block(node):
                    break  # a quoted string is on one line of the file
                above, node = above + _first(node) - 1, _inside(node)
            found = _step(node, step)
            if found is None:
                break
            marked, node = found
            name, start = above + marked.start_mark.line + 1, above + _first(node)
        more = len(node.value.splitlines()) - 1 if _is_block(node) else 0
        return name, start, start + max(more, 0)


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
                parent.count += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append(_OpenNode(is_mapping=isinstance(event, yaml.MappingStartEvent)))
    except (yaml.YAMLError, UnicodeError):
        return []
    return duplicates


class _OpenNode:
    """A mapping or list whose end event was not read yet."""

    __slots__ = ("count", "first_lines", "is_mapping", "key")

    def __init__(self, *, is_mapping: bool) -> None:
        self.is_mapping = is_mapping
        self.count = 0  # keys and values, or items, read so far
        self.key = ""
        self.first_lines: dict[str, int] = {}

    def is_key_next(self) -> bool:
        return self.is_mapping and self.count % 2 == 0

    def add_key(self, key: str, line: int) -> int:
        """Record a key and return the line of its first occurrence, or 0."""
        first_line = self.first_lines.get(key, 0)
        self.first_lines.setdefault(key, line)
        self.key = key
        return first_line


def _is_empty(node: Any) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null")


class _Marking:
    """Converts PyYAML nodes to LocatedNodes. Aliased nodes stay shared. A field's line is the line of its key."""

    def __init__(self, *, flat: bool = False) -> None:
        self._flat = flat
        self._known: dict[tuple[int, int], Marked] = {}
        self._nodes: list[Any] = []  # keeps nodes alive, so that ids stay unique

    def of(self, node: Any, above: int, line: int | None = None) -> Marked:
        line = int(node.start_mark.line) if line is None else line
        known = self._known.get((id(node), line))
        if known is not None:
            return known
        found = Marked(above + (1 if self._flat else line + 1))
        self._known[id(node), line] = found
        self._nodes.append(node)
        if isinstance(node, yaml.ScalarNode):
            found.text = node.value
        elif isinstance(node, yaml.SequenceNode):
            found.below = [self.of(each, above) for each in node.value]
        elif isinstance(node, yaml.MappingNode):
            found.below = below = {}
            merged: list[Any] = []
            for key, value in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                elif isinstance(key, yaml.ScalarNode):
                    below[key.value] = self.of(value, above, int(key.start_mark.line))
            for each in merged:
                inherited = self.of(each, above).below
                if isinstance(inherited, dict):
                    below |= {name: value for name, value in inherited.items() if name not in below}
        return found


def _objects_in(node: Any) -> Iterator[Any]:
    """List the nodes of the manifests in a document, in reading order."""
    if not isinstance(node, yaml.MappingNode):
        return
    fields = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    kind, items = fields.get("kind"), fields.get("items")
    if kind is not None and str(kind.value).endswith("List") and isinstance(items, yaml.SequenceNode):
        for item in items.value:
            yield from _objects_in(item)
    else:
        yield node


def _first(node: Any) -> int:
    """Return the first line of a node's content; the content of a block scalar starts below its indicator."""
    return int(node.start_mark.line) + (2 if _is_block(node) else 1)


def _is_block(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _inside(node: Any) -> Any:
    try:
        return yaml.compose(node.value, Loader=_LOADER)
    except yaml.YAMLError:
        return None


def _step(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Return the key node and the value node of a path step."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    return None
