"""JSONPath templates such as `{range .items[*]}{.metadata.name}{"\\n"}{end}`, as kubectl prints them.

In: a template, a value. Out: text. Never: fails on data; only an invalid template is an error (UserError).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from argosy.errors import UserError
from argosy.kube.schema.jsonpath import compile_path

_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PART = re.compile(r"\{((?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^{}\"'])*)\}", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

TemplatePart = tuple[str, str]  # type (text, path, range, end) and content


def render_template(template: str, value: Any) -> str:
    parts = list(_split_template(template))
    text, end_index = _render_parts(parts, 0, value, value)
    if end_index != len(parts):
        raise UserError("{end} without {range}; remove it", where=f"template {template}")
    return text


def format_value(value: Any) -> str:
    """k8s: strings as they are, other values as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _split_template(template: str) -> Iterator[TemplatePart]:
    offset = 0
    for match in _PART.finditer(template):
        if match.start() > offset:
            yield "text", template[offset : match.start()]
        yield _read_part(match[1].strip())
        offset = match.end()
    if offset < len(template):
        yield "text", template[offset:]


def _read_part(inside: str) -> TemplatePart:
    if quoted := _QUOTED.fullmatch(inside):
        return "text", re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), quoted[1] or quoted[2] or "")
    if inside == "end":
        return "end", ""
    if inside.startswith("range ") or inside.startswith("range."):
        return "range", inside.removeprefix("range").strip()
    return "path", inside


def _render_parts(parts: list[TemplatePart], index: int, value: Any, root: Any) -> tuple[str, int]:
    """Return the text, and the index of the part that ended it."""
    out: list[str] = []
    while index < len(parts):
        kind, content = parts[index]
        if kind == "end":
            return "".join(out), index
        if kind == "range":
            values = compile_path(content).find_all(root if content.startswith("$") else value)
            end_index = _find_range_end(parts, index)
            out += [_render_parts(parts[:end_index], index + 1, item, root)[0] for item in values]
            index = end_index
        elif kind == "text":
            out.append(content)
        else:
            values = compile_path(content).find_all(root if content.startswith("$") else value)
            out.append(" ".join(map(format_value, values)))
        index += 1
    return "".join(out), index


def _find_range_end(parts: list[TemplatePart], start_index: int) -> int:
    depth = 0
    for index in range(start_index, len(parts)):
        depth += {"range": 1, "end": -1}.get(parts[index][0], 0)
        if not depth:
            return index
    raise UserError("{range} without {end}; add it", where="template")
