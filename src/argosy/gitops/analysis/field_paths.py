"""Parses field paths that people type: `.spec.replicas`, `spec.containers[0].image`, `[name="web"]`, JSON pointers.

In: a path and the manifest. Out: a JSON pointer. Never: a path that the manifest does not have; raises an error that
lists the existing names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.patch.json_pointer import format_tokens, parse

_STEP: Final = re.compile(
    r"""\.?(?P<plain>[^.\[\]"']+)|\[(?P<index>\d+)\]|\[(?P<mark>["'])(?P<quoted>.+?)(?P=mark)\]"""
    r"""|\[(?P<by>\w+)=["']?(?P<value>[^"'\]]+)["']?\]"""
)
MOST_NAMES: Final = 12


def find_field(path: str, manifest: Manifest) -> str:
    """Return the pointer of a field that exists in the manifest. Raises UserError."""
    here: Any = manifest
    tokens: list[str | int] = []
    for step in _steps(path):
        here, token = _below(here, step, path)
        tokens.append(token)
    return format_tokens(tokens)


def _steps(path: str) -> Iterator[str | tuple[str, str]]:
    if path.startswith("/"):
        yield from parse(path)
        return
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        end = match.end()
        yield (match["by"], match["value"]) if match["by"] else match["plain"] or match["index"] or match["quoted"]
    if end != len(path) or not path:
        raise UserError(f"{path!r} is not a field path; example: .spec.replicas", where="FIELD")


def _below(here: Any, step: str | tuple[str, str], path: str) -> tuple[Any, str | int]:
    if isinstance(here, dict) and isinstance(step, str) and step in here:
        return here[step], step
    if isinstance(here, list):
        for index, item in enumerate(here):
            if step == str(index) or (isinstance(step, tuple) and _is_named(item, *step)):
                return item, index
    raise UserError(f"{path} not found: {_hint(here, step)}", where="FIELD")


def _is_named(item: Any, by: str, value: str) -> bool:
    return isinstance(item, dict) and str(item.get(by)) == value


def _hint(here: Any, step: str | tuple[str, str]) -> str:
    said = step if isinstance(step, str) else f'[{step[0]}="{step[1]}"]'
    if isinstance(here, list):
        return f"the list of {len(here)} has no {said}; address an element by its index or its name"
    names = sorted(here) if isinstance(here, dict) else []
    near = difflib.get_close_matches(said, names, n=1)
    if near:
        return f"no field {said}; did you mean {near[0]}?"
    known = ", ".join(names[:MOST_NAMES]) or "nothing"
    return f"no field {said}; existing fields: {known}{' and more' if len(names) > MOST_NAMES else ''}"
