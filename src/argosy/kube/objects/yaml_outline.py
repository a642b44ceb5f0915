"""Finds the start and end offsets of all nodes in YAML text.

In: valid YAML text. Out: nodes with their offsets. Never: returns a value.
A block collection ends where its last entry ends; the parser reports the start of the next token instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from argosy.kube.objects.yaml_scalars import Profile, ScalarError, key_text, resolve

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Node:
    """A value in the text. `end` is the offset after its last character, before a trailing comment or line break."""

    __slots__ = ("anchor", "end", "entries", "flow", "kind", "merged", "odd", "start", "style")

    def __init__(self, kind: str, start: int, end: int, *, anchor: str = "", style: str = "") -> None:
        self.kind = kind  # map, list, scalar or alias
        self.start = start
        self.end = end
        self.anchor = anchor
        self.style = style
        self.flow = False
        self.merged = False
        self.odd = False  # has keys with `? `, or pairs without braces
        self.entries: list[Entry] = []

    @property
    def is_block(self) -> bool:
        return self.kind in ("map", "list") and not self.flow

    @property
    def is_literal(self) -> bool:
        return self.style in ("|", ">")


class Entry:
    """A key or a dash with its value. `value_start` is the offset after the colon or the dash."""

    __slots__ = ("lead", "name", "name_end", "start", "value")

    def __init__(self, name: str, start: int, name_end: int, lead: int, value: Node) -> None:
        self.name = name
        self.start = start
        self.name_end = name_end
        self.lead = lead
        self.value = value

    @property
    def end(self) -> int:
        return max(self.value.end, self.lead)


class Place:
    """One document: its root (None if it is empty), and the offset where a root can be inserted."""

    __slots__ = ("lead", "root")

    def __init__(self, root: Node | None, lead: int) -> None:
        self.root = root
        self.lead = lead


def outline(text: str) -> list[Place]:
    """Return the outlines of all documents of the text, including empty ones."""
    return list(_Outline(text).places())


def line_begin(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the end of the line, before its line break."""
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


def column(text: str, at: int) -> int:
    return at - line_begin(text, at)


def stands_first(text: str, at: int) -> bool:
    """True if only spaces precede the offset on its line."""
    return not text[line_begin(text, at) : at].strip(" ")


def after_blanks(text: str, at: int) -> int:
    """Return the next offset that is neither whitespace nor comment."""
    while at < len(text):
        if text[at] == "#":
            at = line_end(text, at)
        elif text[at] in " \t\r\n":
            at += 1
        else:
            break
    return at


class _Outline:
    def __init__(self, text: str) -> None:
        self._text = text
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def _next(self) -> Any:
        return next(self._events)

    def places(self) -> Iterator[Place]:
        self._next()
        while isinstance(event := self._next(), yaml.DocumentStartEvent):
            mark: Any = event.end_mark
            lead = int(mark.index) if event.explicit else len(self._text)
            node = self._node(self._next())
            yield Place(None if node.kind == "scalar" and node.start == node.end else node, lead)
            self._next()

    def _node(self, event: Any) -> Node:
        start, end = int(event.start_mark.index), int(event.end_mark.index)
        if isinstance(event, yaml.AliasEvent):
            return Node("alias", start, end, anchor=str(event.anchor))
        if isinstance(event, yaml.ScalarEvent):
            node = Node("scalar", start, end, anchor=event.anchor or "", style=event.style or "")
            if node.is_literal:
                node.end = self._literal_end(start, end)
            return node
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
        node = Node(kind, start, end, anchor=event.anchor or "")
        node.flow = bool(event.flow_style)
        last = self._pairs(node) if kind == "map" else self._items(node)
        node.end = int(last.end_mark.index) if node.flow or not node.entries else node.entries[-1].end
        if node.flow and self._text[node.end - 1 : node.end] not in ("}", "]"):
            node.odd, node.end = True, node.entries[-1].end  # [a: 1]
        return node

    def _literal_end(self, start: int, end: int) -> int:
        text = self._text[start:end]
        if "+" in text.splitlines()[0].split("#")[0]:
            return start + len(text.removesuffix("\n").removesuffix("\r"))
        return start + len(text.rstrip(" \t\r\n"))

    def _pairs(self, node: Node) -> Any:
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._node(event)
            name = _name(event)
            value = self._node(self._next())
            colon = after_blanks(self._text, key.end)
            has_colon = self._text[colon : colon + 1] == ":"
            if name is None or "\n" in self._text[key.end : colon] or self._is_asked(key.start):
                node.odd = True
            node.merged = node.merged or (name == "<<" and not event.style)
            lead = colon + 1 if has_colon else key.end
            node.entries.append(Entry(name or "", key.start, key.end, lead, value))
        return event

    def _is_asked(self, start: int) -> bool:
        before = self._text[line_begin(self._text, start) : start].rstrip(" ")
        return before.endswith("?") and before[-2:-1] in ("", " ", "{", ",", "-")

    def _items(self, node: Node) -> Any:
        at = node.start
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            value = self._node(event)
            if node.flow:
                node.entries.append(Entry("", value.start, value.start, value.start, value))
                continue
            dash = after_blanks(self._text, at)
            node.odd = node.odd or self._text[dash : dash + 1] != "-"  # after a tag
            node.entries.append(Entry("", dash, dash + 1, dash + 1, value))
            at = max(value.end, dash + 1)
        return event


def _name(event: Any) -> str | None:
    """Return a key as the YAML reader returns it; None for a key that is a mapping or list."""
    if not isinstance(event, yaml.ScalarEvent):
        return None
    if not event.implicit[0]:
        return str(event.value)
    try:
        return key_text(resolve(event.value, Profile.KUBERNETES))
    except ScalarError:
        return str(event.value)
