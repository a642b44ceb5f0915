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

from argosy.kube.objects.yaml_outline import Node, column
from argosy.kube.objects.yaml_scalars import looks_typed
from argosy.kube.objects.yaml_writer import one_line

_BARE = re.compile(r"[A-Za-z0-9_/.$*@=+-][A-Za-z0-9_/.$@=+-]*")
_BLOCK = re.compile(r"(?=[^ \n\t])[^\r\t\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u2028\u2029\ud800-\udfff]*")
_SINGLE = re.compile(r"[\x20-\x7e\xa0-\ud7ff]*")
_NOT_BLOCK: Final = re.compile(r" (?:\n|\Z)|\n\n\Z")  # trailing spaces are invisible; trailing line breaks get lost


class Style(NamedTuple):
    """Indentation of mappings and lists relative to their key, and the line break."""

    step: int = 2
    dash: int = 0
    newline: str = "\n"


def style_of(text: str, roots: Iterable[Node]) -> Style:
    """Return the most frequent indentation of the file; where the file has none, the usual indentation."""
    steps: Counter[int] = Counter()
    dashes: Counter[int] = Counter()
    for root in roots:
        _count(text, root, steps, dashes)
    newline = "\r\n" if "\r\n" in text else "\n"
    step = steps.most_common(1)[0][0] if steps else 2
    return Style(step, dashes.most_common(1)[0][0] if dashes else 0, newline)


def _count(text: str, node: Node, steps: Counter[int], dashes: Counter[int]) -> None:
    if not node.is_block:
        return
    for entry in node.entries:
        below = entry.value
        if node.kind == "map" and below.is_block and not below.odd and not node.odd:
            distance = column(text, below.entries[0].start) - column(text, entry.start)
            if distance > 0 or below.kind == "list":
                (steps if below.kind == "map" else dashes)[distance] += 1
        _count(text, below, steps, dashes)


def block_lines(value: Any, at: int, style: Style) -> list[str]:
    """Render the lines of a non-empty mapping or list at this indentation."""
    pad = " " * at
    if isinstance(value, dict):
        rows = ((pad + f"{key_in_block(key)}:", each, False) for key, each in value.items())
    else:
        rows = ((pad + "-", each, True) for each in value)
    lines: list[str] = []
    for lead, each, is_item in rows:
        first, rest = behind(each, at, style, is_item=is_item)
        lines += [lead + first, *rest]
    return lines


def behind(value: Any, at: int, style: Style, *, is_item: bool) -> tuple[str, list[str]]:
    """Render a value after the colon or dash at this indentation: the text on that line, and the lines below."""
    if isinstance(value, dict | list) and value:
        if is_item:
            lines = block_lines(value, at + 2, style)
            return " " + lines[0].lstrip(" "), lines[1:]
        inset = style.dash if isinstance(value, list) else style.step
        return "", block_lines(value, at + inset, style)
    if isinstance(value, str) and "\n" in value and _BLOCK.fullmatch(value) and not _NOT_BLOCK.search(value):
        return _literal(value, at + style.step)
    return " " + scalar(value), []


def _literal(text: str, at: int) -> tuple[str, list[str]]:
    chomp = "" if text.endswith("\n") else "-"
    return f" |{chomp}", [" " * at + line if line else "" for line in text.removesuffix("\n").split("\n")]


def scalar(value: Any, was: str = "") -> str:
    """Render a scalar with the quotes of the old value."""
    if isinstance(value, str):
        if was == '"':
            return _double(value)
        if was == "'" and _SINGLE.fullmatch(value):
            return "'" + value.replace("'", "''") + "'"
        if "\n" in value:
            return _double(value)
    return one_line(value)


def flow_text(value: Any, *, quoted: bool) -> str:
    """Render a value inside a flow collection; with `json_style`, as JSON."""
    if quoted:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        inner = (f"{key_in_flow(key, quoted=False)}: {flow_text(each, quoted=False)}" for key, each in value.items())
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow_text(each, quoted=False) for each in value) + "]"
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and not looks_typed(value) and value[0] not in "*@" else _double(value)
    return one_line(value)


def key_in_flow(key: str, *, quoted: bool) -> str:
    return _double(key) if quoted or not _BARE.fullmatch(key) or looks_typed(key) or key[0] in "*@" else key


def key_in_block(key: str) -> str:
    return '"<<"' if key == "<<" else scalar(key)


def _double(text: str) -> str:
    """Quote a string like JSON, and escape the characters that only YAML requires to be escaped."""
    said = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\ufeff\u2028\u2029\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", said)
