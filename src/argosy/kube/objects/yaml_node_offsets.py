"""Finds the start and end offsets of all nodes in YAML text.

In: valid YAML text. Out: nodes with their offsets. Never: returns a value.
A block collection ends where its last entry ends; the parser reports the start of the next token instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from argosy.kube.objects.yaml_scalars import ScalarError, YamlDialect, format_key, resolve_scalar

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class OutlineNode:
    """A value in the text. `end` is the offset after its last character, before a trailing comment or line break."""

    __slots__ = ("anchor", "end", "entries", "has_merge_key", "is_flow", "is_unusual", "kind", "start", "style")

    def __init__(self, kind: str, start: int, end: int, *, anchor: str = "", style: str = "") -> None:
        self.kind = kind  # map, list, scalar or alias
        self.start = start
        self.end = end
        self.anchor = anchor
        self.style = style
        self.is_flow = False
        self.has_merge_key = False
        self.is_unusual = False  # has keys with `? `, or pairs without braces
        self.entries: list[OutlineEntry] = []

    @property
    def is_block(self) -> bool:
        return self.kind in ("map", "list") and not self.is_flow

    @property
    def is_block_scalar(self) -> bool:
        return self.style in ("|", ">")


class OutlineEntry:
    """A key or a dash with its value. `value_start` is the offset after the colon or the dash."""

    __slots__ = ("key", "key_end", "start", "value", "value_start")

    def __init__(self, key: str, start: int, key_end: int, value_start: int, value: OutlineNode) -> None:
        self.key = key
        self.start = start
        self.key_end = key_end
        self.value_start = value_start
        self.value = value

    @property
    def end(self) -> int:
        return max(self.value.end, self.value_start)


class DocumentOutline:
    """One document: its root (None if it is empty), and the offset where a root can be inserted."""

    __slots__ = ("root", "root_start")

    def __init__(self, root: OutlineNode | None, root_start: int) -> None:
        self.root = root
        self.root_start = root_start


def outline_documents(text: str) -> list[DocumentOutline]:
    """Return the outlines of all documents of the text, including empty ones."""
    return list(_OutlineParser(text).parse_documents())


def find_line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def find_line_end(text: str, offset: int) -> int:
    """Return the end of the line, before its line break."""
    end = text.find("\n", offset)
    if end < 0:
        return len(text)
    return end - 1 if end > offset and text[end - 1] == "\r" else end


def find_column(text: str, offset: int) -> int:
    return offset - find_line_start(text, offset)


def is_first_on_line(text: str, offset: int) -> bool:
    """True if only spaces precede the offset on its line."""
    return not text[find_line_start(text, offset) : offset].strip(" ")


def skip_blanks(text: str, offset: int) -> int:
    """Return the next offset that is neither whitespace nor comment."""
    while offset < len(text):
        if text[offset] == "#":
            offset = find_line_end(text, offset)
        elif text[offset] in " \t\r\n":
            offset += 1
        else:
            break
    return offset


class _OutlineParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def _next_event(self) -> Any:
        return next(self._events)

    def parse_documents(self) -> Iterator[DocumentOutline]:
        self._next_event()
        while isinstance(event := self._next_event(), yaml.DocumentStartEvent):
            mark: Any = event.end_mark
            root_start = int(mark.index) if event.explicit else len(self._text)
            node = self._read_node(self._next_event())
            yield DocumentOutline(None if node.kind == "scalar" and node.start == node.end else node, root_start)
            self._next_event()

    def _read_node(self, event: Any) -> OutlineNode:
        start, end = int(event.start_mark.index), int(event.end_mark.index)
        if isinstance(event, yaml.AliasEvent):
            return OutlineNode("alias", start, end, anchor=str(event.anchor))
        if isinstance(event, yaml.ScalarEvent):
            node = OutlineNode("scalar", start, end, anchor=event.anchor or "", style=event.style or "")
            if node.is_block_scalar:
                node.end = self._find_block_scalar_end(start, end)
            return node
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
        node = OutlineNode(kind, start, end, anchor=event.anchor or "")
        node.is_flow = bool(event.flow_style)
        end_event = self._read_pairs(node) if kind == "map" else self._read_items(node)
        node.end = int(end_event.end_mark.index) if node.is_flow or not node.entries else node.entries[-1].end
        if node.is_flow and self._text[node.end - 1 : node.end] not in ("}", "]"):
            node.is_unusual, node.end = True, node.entries[-1].end  # [a: 1]
        return node

    def _find_block_scalar_end(self, start: int, end: int) -> int:
        text = self._text[start:end]
        if "+" in text.splitlines()[0].split("#")[0]:
            return start + len(text.removesuffix("\n").removesuffix("\r"))
        return start + len(text.rstrip(" \t\r\n"))

    def _read_pairs(self, node: OutlineNode) -> Any:
        while not isinstance(event := self._next_event(), yaml.MappingEndEvent):
            key = self._read_node(event)
            key_text = _read_key(event)
            value = self._read_node(self._next_event())
            colon = skip_blanks(self._text, key.end)
            has_colon = self._text[colon : colon + 1] == ":"
            if key_text is None or "\n" in self._text[key.end : colon] or self._has_question_mark(key.start):
                node.is_unusual = True
            node.has_merge_key = node.has_merge_key or (key_text == "<<" and not event.style)
            value_start = colon + 1 if has_colon else key.end
            node.entries.append(OutlineEntry(key_text or "", key.start, key.end, value_start, value))
        return event

    def _has_question_mark(self, start: int) -> bool:
        before = self._text[find_line_start(self._text, start) : start].rstrip(" ")
        return before.endswith("?") and before[-2:-1] in ("", " ", "{", ",", "-")

    def _read_items(self, node: OutlineNode) -> Any:
        offset = node.start
        while not isinstance(event := self._next_event(), yaml.SequenceEndEvent):
            value = self._read_node(event)
            if node.is_flow:
                node.entries.append(OutlineEntry("", value.start, value.start, value.start, value))
                continue
            dash = skip_blanks(self._text, offset)
            node.is_unusual = node.is_unusual or self._text[dash : dash + 1] != "-"  # after a tag
            node.entries.append(OutlineEntry("", dash, dash + 1, dash + 1, value))
            offset = max(value.end, dash + 1)
        return event


def _read_key(event: Any) -> str | None:
    """Return a key as the YAML reader returns it; None for a key that is a mapping or list."""
    if not isinstance(event, yaml.ScalarEvent):
        return None
    if not event.implicit[0]:
        return str(event.value)
    try:
        return format_key(resolve_scalar(event.value, YamlDialect.KUBERNETES))
    except ScalarError:
        return str(event.value)
