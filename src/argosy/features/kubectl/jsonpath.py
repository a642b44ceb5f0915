"""JSONPath templates such as `{range .items[*]}{.metadata.name}{"\\n"}{end}`, as kubectl prints them.

In: a template, a value. Out: text. Never: fails on data; only an invalid template is an error (UserError).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from argosy.errors import UserError
from argosy.kube.schema.jsonpath import compiled

_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PART = re.compile(r"\{((?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^{}\"'])*)\}", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}

Part = tuple[str, str]  # type (text, path, range, end) and content


def filled(template: str, value: Any) -> str:
    parts = list(_parts(template))
    text, end = _fill(parts, 0, value, value)
    if end != len(parts):
        raise UserError("{end} without {range}; remove it", where=f"template {template}")
    return text


def shown(value: Any) -> str:
    """k8s: strings as they are, other values as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _parts(template: str) -> Iterator[Part]:
    at = 0
    for found in _PART.finditer(template):
        if found.start() > at:
            yield "text", template[at : found.start()]
        yield _read(found[1].strip())
        at = found.end()
    if at < len(template):
        yield "text", template[at:]


def _read(inside: str) -> Part:
    if quoted := _QUOTED.fullmatch(inside):
        return "text", re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), quoted[1] or quoted[2] or "")
    if inside == "end":
        return "end", ""
    if inside.startswith("range ") or inside.startswith("range."):
        return "range", inside.removeprefix("range").strip()
    return "path", inside


def _fill(parts: list[Part], at: int, value: Any, root: Any) -> tuple[str, int]:
    """Return the text, and the index of the part that ended it."""
    out: list[str] = []
    while at < len(parts):
        kind, words = parts[at]
        if kind == "end":
            return "".join(out), at
        if kind == "range":
            found = compiled(words).find(root if words.startswith("$") else value)
            end = _end_of(parts, at)
            out += [_fill(parts[:end], at + 1, each, root)[0] for each in found]
            at = end
        elif kind == "text":
            out.append(words)
        else:
            found = compiled(words).find(root if words.startswith("$") else value)
            out.append(" ".join(map(shown, found)))
        at += 1
    return "".join(out), at


def _end_of(parts: list[Part], at: int) -> int:
    depth = 0
    for number in range(at, len(parts)):
        depth += {"range": 1, "end": -1}.get(parts[number][0], 0)
        if not depth:
            return number
    raise UserError("{range} without {end}; add it", where="template")
