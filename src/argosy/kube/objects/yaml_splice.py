"""Applies one change of one entry to YAML text.

In: text, the outline of a document, and a change. Out: the changed text. Never: verifies the result.

Comments stay in place: after a value on its line, above an entry, between entries. A change that would lose a comment
or change a second place is refused.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects.yaml_outline import (
    Entry,
    Node,
    Place,
    after_blanks,
    column,
    line_begin,
    line_end,
    stands_first,
)
from argosy.kube.objects.yaml_style import (
    Style,
    behind,
    block_lines,
    flow_text,
    key_in_block,
    key_in_flow,
    scalar,
    style_of,
)

Splice = tuple[int, int, str]


class NotEditable(Exception):
    """The edit must be done by hand. The reason completes a sentence that starts with the field's path."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def spliced(text: str, place: Place, what: str, path: tuple[str | int, ...], value: Any) -> str:
    style = style_of(text, [place.root] if place.root else [])
    splices = _Splicing(text, style, place).splices(what, path, value)
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


class _Splicing:
    def __init__(self, text: str, style: Style, place: Place) -> None:
        self.text = text
        self.style = style
        self.place = place

    def splices(self, what: str, path: tuple[str | int, ...], value: Any) -> list[Splice]:
        if self.place.root is None or not path:
            return self.new_root(value if not path else _as_parent(path, value))
        trail = self.walk(path)
        node, entry = trail[-1]
        if entry is not None and what != "insert":
            if entry.value.anchor and entry.value.kind != "alias":
                raise NotEditable(f"has the anchor &{entry.value.anchor}, which others may use")
            return self.removed(trail) if what == "remove" else self.replaced(node, entry, value)
        if not node.entries:
            return self.filled(trail, path[-1], value)
        at = path[-1] if isinstance(path[-1], int) else len(node.entries)
        return self.added(node, at, path[-1], value)

    def walk(self, path: tuple[str | int, ...]) -> list[tuple[Node, Entry | None]]:
        """Return the containers on the path with the entry taken in each; the last entry may be missing."""
        node = self.place.root
        trail: list[tuple[Node, Entry | None]] = []
        for step in path:
            if node is None:
                raise NotEditable("goes through a mapping or list of unusual form")
            _check(node)
            entry = _entry(node, step)
            trail.append((node, entry))
            node = entry.value if entry else None
        return trail

    def new_root(self, value: Any) -> list[Splice]:
        root, newline = self.place.root, self.style.newline
        if root is not None:
            if root.anchor or not stands_first(self.text, root.start):
                raise NotEditable("has an anchor, or shares its line")
            end = line_end(self.text, root.end) if root.is_block or root.is_literal else root.end
            return [(root.start, end, self.root_text(value))]
        at, said = line_end(self.text, self.place.lead), self.root_text(value)
        before = newline if at and self.text[at - 1] != "\n" else ""
        return [(at, at, before + said + ("" if at < len(self.text) else newline))]

    def root_text(self, value: Any) -> str:
        if isinstance(value, dict | list) and value:
            return self.style.newline.join(block_lines(value, 0, self.style))
        return scalar(value)

    def replaced(self, node: Node, entry: Entry, value: Any) -> list[Splice]:
        old, text = entry.value, self.text
        if node.flow:
            return self.replaced_in_flow(node, entry, value)
        at = column(text, entry.start)
        first, rest = behind(value, at, self.style, is_item=node.kind == "list")
        if not rest and old.end > old.start and not old.is_block and not old.is_literal:
            said = scalar(value, old.style) if not isinstance(value, dict | list) else first.strip()
            return [(old.start, old.end, said)]
        below = "".join(self.style.newline + line for line in rest)
        eol, last = line_end(text, entry.lead), line_end(text, old.end)
        if old.start > eol:
            return [(entry.lead, entry.lead, first), (eol, last, below)]
        if old.is_literal:
            return [(entry.lead, last, first + _comment(text[old.start : eol]) + below)]
        if old.is_block:
            return [(entry.lead, last, first + below)]
        return [(entry.lead, max(old.end, entry.lead), first), (last, last, below)]

    def replaced_in_flow(self, node: Node, entry: Entry, value: Any) -> list[Splice]:
        old = entry.value
        said = flow_text(value, quoted=self.is_quoted(node))
        if old.end > old.start:
            if isinstance(value, str) and old.style in ("'", '"'):
                said = scalar(value, old.style)
            return [(old.start, old.end, said)]
        if node.kind == "map" and entry.lead == entry.name_end:
            return [(entry.lead, entry.lead, ": " + said)]
        return [(entry.lead, entry.lead, " " + said)]

    def is_quoted(self, node: Node) -> bool:
        """True if a flow collection is written like JSON: all keys, or all strings, in double quotes."""
        root = self.place.root
        if root is not None and root.flow and root.entries:
            node = root
        if node.kind == "map":
            return bool(node.entries) and all(self.text[each.start] == '"' for each in node.entries)
        texts = [each.value for each in node.entries if each.value.kind == "scalar"]
        return bool(texts) and all(each.style == '"' for each in texts)

    def filled(self, trail: list[tuple[Node, Entry | None]], step: str | int, value: Any) -> list[Splice]:
        """Add the first entry to an empty mapping or list, as a block unless the parent is a flow collection."""
        node = trail[-1][0]
        if self.text[node.start + 1 : node.end - 1].strip():
            raise NotEditable("holds only a comment")
        whole = _as_parent((step,), value)
        if len(trail) > 1 and not trail[-2][0].flow:
            above, entry = trail[-2]
            assert entry is not None
            return self.replaced(above, entry, whole)
        return [(node.start, node.end, flow_text(whole, quoted=self.is_quoted(node)))]

    def added(self, node: Node, at: int, step: str | int, value: Any) -> list[Splice]:
        if node.flow:
            return self.added_to_flow(node, at, step, value)
        text, newline = self.text, self.style.newline
        where = column(text, node.entries[0].start)
        first, rest = behind(value, where, self.style, is_item=node.kind == "list")
        lead = f"{key_in_block(step)}:" if isinstance(step, str) else "-"
        lines = [" " * where + lead + first, *rest]
        if at:
            end = line_end(text, node.entries[at - 1].end)
            return [(end, end, "".join(newline + line for line in lines))]
        start = node.entries[0].start
        if not stands_first(text, start):
            raise NotEditable("shares its line with its parent")
        start = line_begin(text, start)
        return [(start, start, "".join(line + newline for line in lines))]

    def added_to_flow(self, node: Node, at: int, step: str | int, value: Any) -> list[Splice]:
        text, quoted = self.text, self.is_quoted(node)
        said = flow_text(value, quoted=quoted)
        if isinstance(step, str):
            said = f"{key_in_flow(step, quoted=quoted)}: {said}"
        if at == 0:
            start = node.entries[0].start
            return [(start, start, said + ", ")]
        before = node.entries[at - 1]
        gap = " "
        if stands_first(text, before.start):
            gap = self.style.newline + text[line_begin(text, before.start) : before.start]
        comma = after_blanks(text, before.end)
        if at == len(node.entries) and text[comma] == ",":  # a trailing comma
            return [(comma + 1, comma + 1, gap + said + ",")]
        return [(before.end, before.end, "," + gap + said)]

    def removed(self, trail: list[tuple[Node, Entry | None]]) -> list[Splice]:
        node, entry = trail[-1]
        assert entry is not None
        if len(node.entries) == 1:
            return self.emptied(trail)
        index = node.entries.index(entry)
        after = node.entries[index + 1] if index + 1 < len(node.entries) else None
        if node.flow:
            return self.removed_from_flow(node.entries[index - 1] if index else None, entry, after)
        text = self.text
        end = line_end(text, entry.end)
        following = end + len(self.style.newline) if end < len(text) else end
        if stands_first(text, entry.start):
            start = self.own_comment(node, entry, after) if node.kind == "list" else line_begin(text, entry.start)
            if end == len(text):  # the last line has no line break: remove the one before it
                start = _before_break(text, start)
            return [(start, following, "")]
        assert after is not None
        if "#" in text[following : after.start]:
            return [(_blank_start(text, entry.start), end, "")]
        return [(entry.start, after.start, "")]

    def own_comment(self, node: Node, entry: Entry, after: Entry | None) -> int:
        """Return the start of the comment that belongs to this item alone, else the start of the item's line.

        Such a comment is directly above the item, in its column, and the next item is not on the next line.
        """
        text, begin = self.text, line_begin(self.text, entry.start)
        if after is not None and line_begin(text, after.start) == line_end(text, entry.end) + len(self.style.newline):
            return begin  # the comment may describe both items
        where, first = column(text, entry.start), begin
        while first > 0:
            above = line_begin(text, _before_break(text, first))
            line = text[above:first]
            if not line.lstrip(" ").startswith("#") or len(line) - len(line.lstrip(" ")) != where:
                break
            first = above
        return first

    def removed_from_flow(self, before: Entry | None, entry: Entry, after: Entry | None) -> list[Splice]:
        if before is None:
            assert after is not None
            start, end = entry.start, after.start
            left = self.text[entry.end : end]
        else:
            start, end = before.end, entry.end
            left = self.text[start : entry.start]
        if "#" in left:
            raise NotEditable("has a comment next to it, inside brackets")
        return [(start, end, "")]

    def emptied(self, trail: list[tuple[Node, Entry | None]]) -> list[Splice]:
        node = trail[-1][0]
        empty: Any = {} if node.kind == "map" else []
        if len(trail) > 1:
            above, entry = trail[-2]
            assert entry is not None
            return self.replaced(above, entry, empty)
        return self.new_root(empty)


def _check(node: Node) -> None:
    if node.kind == "alias":
        raise NotEditable(f"goes through the alias *{node.anchor}, whose value is defined elsewhere")
    if node.anchor:
        raise NotEditable(f"goes through the anchor &{node.anchor}, which others may use")
    if node.merged:
        raise NotEditable("goes through a mapping with a merge key (<<)")
    if node.odd or node.kind == "scalar":
        raise NotEditable("goes through a mapping or list of unusual form")


def _entry(node: Node, step: str | int) -> Entry | None:
    if isinstance(step, int):
        return node.entries[step] if step < len(node.entries) else None
    found = [each for each in node.entries if each.name == step]
    if len(found) > 1:
        raise NotEditable(f"goes through a mapping that has {step} twice")
    return found[0] if found else None


def _as_parent(path: tuple[str | int, ...], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _comment(line: str) -> str:
    at = line.find(" #")
    return line[at:].rstrip("\r") if at >= 0 else ""


def _before_break(text: str, begin: int) -> int:
    """Return the offset before the line break that ends the previous line."""
    if begin and text[begin - 1] == "\n":
        begin -= 1
        if begin and text[begin - 1] == "\r":
            begin -= 1
    return begin


def _blank_start(text: str, at: int) -> int:
    while at and text[at - 1] == " ":
        at -= 1
    return at
