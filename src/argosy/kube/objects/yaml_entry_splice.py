"""Applies one change of one entry to YAML text.

In: text, the outline of a document, and a change. Out: the changed text. Never: verifies the result.

Comments stay in place: after a value on its line, above an entry, between entries. A change that would lose a comment
or change a second place is refused.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects.existing_yaml_style_renderer import (
    YamlStyle,
    detect_style,
    render_block_key,
    render_block_lines,
    render_entry_value,
    render_flow,
    render_flow_key,
    render_scalar,
)
from argosy.kube.objects.yaml_node_offsets import (
    DocumentOutline,
    OutlineEntry,
    OutlineNode,
    find_column,
    find_line_end,
    find_line_start,
    is_first_on_line,
    skip_blanks,
)

Splice = tuple[int, int, str]


class NotEditable(Exception):
    """The edit must be done by hand. The reason completes a sentence that starts with the field's path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def splice_entry(text: str, document: DocumentOutline, action: str, path: tuple[str | int, ...], value: Any) -> str:
    style = detect_style(text, [document.root] if document.root else [])
    splices = _EntrySplicer(text, style, document).build_splices(action, path, value)
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


class _EntrySplicer:
    def __init__(self, text: str, style: YamlStyle, document: DocumentOutline) -> None:
        self.text = text
        self.style = style
        self.document = document

    def build_splices(self, action: str, path: tuple[str | int, ...], value: Any) -> list[Splice]:
        if self.document.root is None or not path:
            return self.replace_root(value if not path else _wrap_in_parents(path, value))
        trail = self.find_trail(path)
        node, entry = trail[-1]
        if entry is not None and action != "insert":
            if entry.value.anchor and entry.value.kind != "alias":
                raise NotEditable(f"has the anchor &{entry.value.anchor}, which others may use")
            return self.remove_entry(trail) if action == "remove" else self.replace_value(node, entry, value)
        if not node.entries:
            return self.fill_empty(trail, path[-1], value)
        index = path[-1] if isinstance(path[-1], int) else len(node.entries)
        return self.add_entry(node, index, path[-1], value)

    def find_trail(self, path: tuple[str | int, ...]) -> list[tuple[OutlineNode, OutlineEntry | None]]:
        """Return the containers on the path with the entry taken in each; the last entry may be missing."""
        node = self.document.root
        trail: list[tuple[OutlineNode, OutlineEntry | None]] = []
        for step in path:
            if node is None:
                raise NotEditable("goes through a mapping or list of unusual form")
            _check_editable(node)
            entry = _find_entry(node, step)
            trail.append((node, entry))
            node = entry.value if entry else None
        return trail

    def replace_root(self, value: Any) -> list[Splice]:
        root, newline = self.document.root, self.style.newline
        if root is not None:
            if root.anchor or not is_first_on_line(self.text, root.start):
                raise NotEditable("has an anchor, or shares its line")
            end = find_line_end(self.text, root.end) if root.is_block or root.is_block_scalar else root.end
            return [(root.start, end, self.render_root(value))]
        offset, root_text = find_line_end(self.text, self.document.root_start), self.render_root(value)
        before = newline if offset and self.text[offset - 1] != "\n" else ""
        return [(offset, offset, before + root_text + ("" if offset < len(self.text) else newline))]

    def render_root(self, value: Any) -> str:
        if isinstance(value, dict | list) and value:
            return self.style.newline.join(render_block_lines(value, 0, self.style))
        return render_scalar(value)

    def replace_value(self, node: OutlineNode, entry: OutlineEntry, value: Any) -> list[Splice]:
        old, text = entry.value, self.text
        if node.is_flow:
            return self.replace_in_flow(node, entry, value)
        indent = find_column(text, entry.start)
        inline_text, lines_below = render_entry_value(value, indent, self.style, is_item=node.kind == "list")
        if not lines_below and old.end > old.start and not old.is_block and not old.is_block_scalar:
            new_text = render_scalar(value, old.style) if not isinstance(value, dict | list) else inline_text.strip()
            return [(old.start, old.end, new_text)]
        text_below = "".join(self.style.newline + line for line in lines_below)
        first_line_end, last_line_end = find_line_end(text, entry.value_start), find_line_end(text, old.end)
        if old.start > first_line_end:
            return [(entry.value_start, entry.value_start, inline_text), (first_line_end, last_line_end, text_below)]
        if old.is_block_scalar:
            return [
                (
                    entry.value_start,
                    last_line_end,
                    inline_text + _find_trailing_comment(text[old.start : first_line_end]) + text_below,
                )
            ]
        if old.is_block:
            return [(entry.value_start, last_line_end, inline_text + text_below)]
        return [
            (entry.value_start, max(old.end, entry.value_start), inline_text),
            (last_line_end, last_line_end, text_below),
        ]

    def replace_in_flow(self, node: OutlineNode, entry: OutlineEntry, value: Any) -> list[Splice]:
        old = entry.value
        new_text = render_flow(value, json_style=self.is_json_style(node))
        if old.end > old.start:
            if isinstance(value, str) and old.style in ("'", '"'):
                new_text = render_scalar(value, old.style)
            return [(old.start, old.end, new_text)]
        if node.kind == "map" and entry.value_start == entry.key_end:
            return [(entry.value_start, entry.value_start, ": " + new_text)]
        return [(entry.value_start, entry.value_start, " " + new_text)]

    def is_json_style(self, node: OutlineNode) -> bool:
        """True if a flow collection is written like JSON: all keys, or all strings, in double quotes."""
        root = self.document.root
        if root is not None and root.is_flow and root.entries:
            node = root
        if node.kind == "map":
            return bool(node.entries) and all(self.text[entry.start] == '"' for entry in node.entries)
        scalars = [entry.value for entry in node.entries if entry.value.kind == "scalar"]
        return bool(scalars) and all(entry.style == '"' for entry in scalars)

    def fill_empty(
        self, trail: list[tuple[OutlineNode, OutlineEntry | None]], step: str | int, value: Any
    ) -> list[Splice]:
        """Add the first entry to an empty mapping or list, as a block unless the parent is a flow collection."""
        node = trail[-1][0]
        if self.text[node.start + 1 : node.end - 1].strip():
            raise NotEditable("holds only a comment")
        container = _wrap_in_parents((step,), value)
        if len(trail) > 1 and not trail[-2][0].is_flow:
            parent, entry = trail[-2]
            assert entry is not None
            return self.replace_value(parent, entry, container)
        return [(node.start, node.end, render_flow(container, json_style=self.is_json_style(node)))]

    def add_entry(self, node: OutlineNode, index: int, step: str | int, value: Any) -> list[Splice]:
        if node.is_flow:
            return self.add_to_flow(node, index, step, value)
        text, newline = self.text, self.style.newline
        indent = find_column(text, node.entries[0].start)
        inline_text, lines_below = render_entry_value(value, indent, self.style, is_item=node.kind == "list")
        prefix = f"{render_block_key(step)}:" if isinstance(step, str) else "-"
        lines = [" " * indent + prefix + inline_text, *lines_below]
        if index:
            end = find_line_end(text, node.entries[index - 1].end)
            return [(end, end, "".join(newline + line for line in lines))]
        start = node.entries[0].start
        if not is_first_on_line(text, start):
            raise NotEditable("shares its line with its parent")
        start = find_line_start(text, start)
        return [(start, start, "".join(line + newline for line in lines))]

    def add_to_flow(self, node: OutlineNode, index: int, step: str | int, value: Any) -> list[Splice]:
        text, is_json = self.text, self.is_json_style(node)
        new_text = render_flow(value, json_style=is_json)
        if isinstance(step, str):
            new_text = f"{render_flow_key(step, json_style=is_json)}: {new_text}"
        if index == 0:
            start = node.entries[0].start
            return [(start, start, new_text + ", ")]
        previous = node.entries[index - 1]
        gap = " "
        if is_first_on_line(text, previous.start):
            gap = self.style.newline + text[find_line_start(text, previous.start) : previous.start]
        comma = skip_blanks(text, previous.end)
        if index == len(node.entries) and text[comma] == ",":  # a trailing comma
            return [(comma + 1, comma + 1, gap + new_text + ",")]
        return [(previous.end, previous.end, "," + gap + new_text)]

    def remove_entry(self, trail: list[tuple[OutlineNode, OutlineEntry | None]]) -> list[Splice]:
        node, entry = trail[-1]
        assert entry is not None
        if len(node.entries) == 1:
            return self.remove_only_entry(trail)
        index = node.entries.index(entry)
        next_entry = node.entries[index + 1] if index + 1 < len(node.entries) else None
        if node.is_flow:
            return self.remove_from_flow(node.entries[index - 1] if index else None, entry, next_entry)
        text = self.text
        end = find_line_end(text, entry.end)
        next_line_start = end + len(self.style.newline) if end < len(text) else end
        if is_first_on_line(text, entry.start):
            start = (
                self.find_comment_start(node, entry, next_entry)
                if node.kind == "list"
                else find_line_start(text, entry.start)
            )
            if end == len(text):  # the last line has no line break: remove the one before it
                start = _skip_break_backwards(text, start)
            return [(start, next_line_start, "")]
        assert next_entry is not None
        if "#" in text[next_line_start : next_entry.start]:
            return [(_skip_blanks_backwards(text, entry.start), end, "")]
        return [(entry.start, next_entry.start, "")]

    def find_comment_start(self, node: OutlineNode, entry: OutlineEntry, next_entry: OutlineEntry | None) -> int:
        """Return the start of the comment that belongs to this item alone, else the start of the item's line.

        Such a comment is directly above the item, in its column, and the next item is not on the next line.
        """
        text, line_start = self.text, find_line_start(self.text, entry.start)
        if next_entry is not None and find_line_start(text, next_entry.start) == find_line_end(text, entry.end) + len(
            self.style.newline
        ):
            return line_start  # the comment may describe both items
        indent, comment_start = find_column(text, entry.start), line_start
        while comment_start > 0:
            previous_line_start = find_line_start(text, _skip_break_backwards(text, comment_start))
            line = text[previous_line_start:comment_start]
            if not line.lstrip(" ").startswith("#") or len(line) - len(line.lstrip(" ")) != indent:
                break
            comment_start = previous_line_start
        return comment_start

    def remove_from_flow(
        self, previous: OutlineEntry | None, entry: OutlineEntry, next_entry: OutlineEntry | None
    ) -> list[Splice]:
        if previous is None:
            assert next_entry is not None
            start, end = entry.start, next_entry.start
            between = self.text[entry.end : end]
        else:
            start, end = previous.end, entry.end
            between = self.text[start : entry.start]
        if "#" in between:
            raise NotEditable("has a comment next to it, inside brackets")
        return [(start, end, "")]

    def remove_only_entry(self, trail: list[tuple[OutlineNode, OutlineEntry | None]]) -> list[Splice]:
        node = trail[-1][0]
        empty: Any = {} if node.kind == "map" else []
        if len(trail) > 1:
            parent, entry = trail[-2]
            assert entry is not None
            return self.replace_value(parent, entry, empty)
        return self.replace_root(empty)


def _check_editable(node: OutlineNode) -> None:
    if node.kind == "alias":
        raise NotEditable(f"goes through the alias *{node.anchor}, whose value is defined elsewhere")
    if node.anchor:
        raise NotEditable(f"goes through the anchor &{node.anchor}, which others may use")
    if node.has_merge_key:
        raise NotEditable("goes through a mapping with a merge key (<<)")
    if node.is_unusual or node.kind == "scalar":
        raise NotEditable("goes through a mapping or list of unusual form")


def _find_entry(node: OutlineNode, step: str | int) -> OutlineEntry | None:
    if isinstance(step, int):
        return node.entries[step] if step < len(node.entries) else None
    matches = [entry for entry in node.entries if entry.key == step]
    if len(matches) > 1:
        raise NotEditable(f"goes through a mapping that has {step} twice")
    return matches[0] if matches else None


def _wrap_in_parents(path: tuple[str | int, ...], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _find_trailing_comment(line: str) -> str:
    offset = line.find(" #")
    return line[offset:].rstrip("\r") if offset >= 0 else ""


def _skip_break_backwards(text: str, offset: int) -> int:
    """Return the offset before the line break that ends the previous line."""
    if offset and text[offset - 1] == "\n":
        offset -= 1
        if offset and text[offset - 1] == "\r":
            offset -= 1
    return offset


def _skip_blanks_backwards(text: str, offset: int) -> int:
    while offset and text[offset - 1] == " ":
        offset -= 1
    return offset
