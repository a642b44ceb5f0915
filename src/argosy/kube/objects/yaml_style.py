"""New YAML in the manner of a file. In: plain data, and the nodes that a text has. Out: lines, or one flow text.

Never: sorts keys; folds; writes what would be read as something else.
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
_NOT_BLOCK: Final = re.compile(r" (?:\n|\Z)|\n\n\Z")  # it could not be seen, or not be kept


class Style(NamedTuple):
    """How far a mapping and a list stand from the key above, and how a line ends."""

    step: int = 2
    dash: int = 0
    newline: str = "\n"


def style_of(text: str, roots: Iterable[Node]) -> Style:
    """What the file does most; what it never does is done as most files do."""
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
    """The lines of a mapping or list that is not empty, from this column on."""
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
    """What stands behind a colon or a dash of this column: on its line, and on the lines below."""
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
    """A single value, with the quotes that the one before it had."""
    if isinstance(value, str):
        if was == '"':
            return _double(value)
        if was == "'" and _SINGLE.fullmatch(value):
            return "'" + value.replace("'", "''") + "'"
        if "\n" in value:
            return _double(value)
    return one_line(value)


def flow_text(value: Any, *, quoted: bool) -> str:
    """A value between brackets; `quoted` as JSON is."""
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
    """JSON's quotes are YAML's, but for the characters that only YAML wants escaped."""
    said = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\ufeff\u2028\u2029\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", said)
