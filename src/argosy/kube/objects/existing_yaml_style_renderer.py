"""Renders new YAML in the style of an existing file.

In: plain data, and the outline of the file. Out: lines of a block, or the text of a flow collection.
Never: sorts keys; folds lines; writes text that would be read as another value.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from argosy.kube.objects.yaml_node_offsets import OutlineNode, find_column
from argosy.kube.objects.yaml_scalars import needs_quotes
from argosy.kube.objects.yaml_writer import dump_on_one_line

_PLAIN_IN_FLOW = re.compile(r"[A-Za-z0-9_/.$*@=+-][A-Za-z0-9_/.$@=+-]*")
_LITERAL_SAFE = re.compile(r"(?=[^ \n\t])[^\r\t\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u2028\u2029\ud800-\udfff]*")
_SINGLE_QUOTE_SAFE = re.compile(r"[\x20-\x7e\xa0-\ud7ff]*")
# Trailing spaces are invisible; trailing line breaks get lost.
_NOT_LITERAL_SAFE: Final = re.compile(r" (?:\n|\Z)|\n\n\Z")


class YamlStyle(NamedTuple):
    """Indentation of mappings and lists relative to their key, and the line break."""

    map_indent: int = 2
    list_indent: int = 0
    newline: str = "\n"


def detect_style(text: str, roots: Iterable[OutlineNode]) -> YamlStyle:
    """Return the most frequent indentation of the file; where the file has none, the usual indentation."""
    map_indents: Counter[int] = Counter()
    list_indents: Counter[int] = Counter()
    for root in roots:
        _count_indents(text, root, map_indents, list_indents)
    newline = "\r\n" if "\r\n" in text else "\n"
    map_indent = map_indents.most_common(1)[0][0] if map_indents else 2
    return YamlStyle(map_indent, list_indents.most_common(1)[0][0] if list_indents else 0, newline)


def _count_indents(text: str, node: OutlineNode, map_indents: Counter[int], list_indents: Counter[int]) -> None:
    if not node.is_block:
        return
    for entry in node.entries:
        child = entry.value
        if node.kind == "map" and child.is_block and not child.is_unusual and not node.is_unusual:
            distance = find_column(text, child.entries[0].start) - find_column(text, entry.start)
            if distance > 0 or child.kind == "list":
                (map_indents if child.kind == "map" else list_indents)[distance] += 1
        _count_indents(text, child, map_indents, list_indents)


def render_block_lines(value: Any, indent: int, style: YamlStyle) -> list[str]:
    """Render the lines of a non-empty mapping or list at this indentation."""
    pad = " " * indent
    if isinstance(value, dict):
        entries = ((pad + f"{render_block_key(key)}:", child, False) for key, child in value.items())
    else:
        entries = ((pad + "-", child, True) for child in value)
    lines: list[str] = []
    for prefix, child, is_item in entries:
        inline_text, lines_below = render_entry_value(child, indent, style, is_item=is_item)
        lines += [prefix + inline_text, *lines_below]
    return lines


def render_entry_value(value: Any, indent: int, style: YamlStyle, *, is_item: bool) -> tuple[str, list[str]]:
    """Render a value after the colon or dash at this indentation: the text on that line, and the lines below."""
    if isinstance(value, dict | list) and value:
        if is_item:
            lines = render_block_lines(value, indent + 2, style)
            return " " + lines[0].lstrip(" "), lines[1:]
        extra_indent = style.list_indent if isinstance(value, list) else style.map_indent
        return "", render_block_lines(value, indent + extra_indent, style)
    if (
        isinstance(value, str)
        and "\n" in value
        and _LITERAL_SAFE.fullmatch(value)
        and not _NOT_LITERAL_SAFE.search(value)
    ):
        return _render_literal(value, indent + style.map_indent)
    return " " + render_scalar(value), []


def _render_literal(text: str, indent: int) -> tuple[str, list[str]]:
    chomping = "" if text.endswith("\n") else "-"
    return f" |{chomping}", [" " * indent + line if line else "" for line in text.removesuffix("\n").split("\n")]


def render_scalar(value: Any, old_quote: str = "") -> str:
    """Render a scalar with the quotes of the old value."""
    if isinstance(value, str):
        if old_quote == '"':
            return _double_quote(value)
        if old_quote == "'" and _SINGLE_QUOTE_SAFE.fullmatch(value):
            return "'" + value.replace("'", "''") + "'"
        if "\n" in value:
            return _double_quote(value)
    return dump_on_one_line(value)


def render_flow(value: Any, *, json_style: bool) -> str:
    """Render a value inside a flow collection; with `json_style`, as JSON."""
    if json_style:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        pairs = (
            f"{render_flow_key(key, json_style=False)}: {render_flow(child, json_style=False)}"
            for key, child in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(render_flow(child, json_style=False) for child in value) + "]"
    if isinstance(value, str):
        return (
            value
            if _PLAIN_IN_FLOW.fullmatch(value) and not needs_quotes(value) and value[0] not in "*@"
            else _double_quote(value)
        )
    return dump_on_one_line(value)


def render_flow_key(key: str, *, json_style: bool) -> str:
    return (
        _double_quote(key)
        if json_style or not _PLAIN_IN_FLOW.fullmatch(key) or needs_quotes(key) or key[0] in "*@"
        else key
    )


def render_block_key(key: str) -> str:
    return '"<<"' if key == "<<" else render_scalar(key)


def _double_quote(text: str) -> str:
    """Quote a string like JSON, and escape the characters that only YAML requires to be escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\ufeff\u2028\u2029\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", quoted)
