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
MAX_SUGGESTED_NAMES: Final = 12


def parse_field_path(path: str, manifest: Manifest) -> str:
    """Return the pointer of a field that exists in the manifest. Raises UserError."""
    value: Any = manifest
    tokens: list[str | int] = []
    for step in _split_path(path):
        value, token = _get_child(value, step, path)
        tokens.append(token)
    return format_tokens(tokens)


def _split_path(path: str) -> Iterator[str | tuple[str, str]]:
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


def _get_child(value: Any, step: str | tuple[str, str], path: str) -> tuple[Any, str | int]:
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return value[step], step
    if isinstance(value, list):
        for index, item in enumerate(value):
            if step == str(index) or (isinstance(step, tuple) and _has_field_value(item, *step)):
                return item, index
    raise UserError(f"{path} not found: {_hint(value, step)}", where="FIELD")


def _has_field_value(item: Any, field: str, value: str) -> bool:
    return isinstance(item, dict) and str(item.get(field)) == value


def _hint(value: Any, step: str | tuple[str, str]) -> str:
    step_text = step if isinstance(step, str) else f'[{step[0]}="{step[1]}"]'
    if isinstance(value, list):
        return f"the list of {len(value)} has no {step_text}; address an element by its index or its name"
    names = sorted(value) if isinstance(value, dict) else []
    close_names = difflib.get_close_matches(step_text, names, n=1)
    if close_names:
        return f"no field {step_text}; did you mean {close_names[0]}?"
    existing_names = ", ".join(names[:MAX_SUGGESTED_NAMES]) or "nothing"
    return (
        f"no field {step_text}; existing fields: "
        f"{existing_names}{' and more' if len(names) > MAX_SUGGESTED_NAMES else ''}"
    )
