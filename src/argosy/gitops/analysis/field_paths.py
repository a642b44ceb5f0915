"""A field as people write it: `.spec.replicas`, `spec.containers[0].image`, `[name="web"]`, or a JSON pointer.

In: a text, the manifest that it is about. Out: a JSON pointer. Never: a place that the manifest does not have; then
the names that there are.
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
    """The pointer of a field that the manifest has. Raises UserError."""
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
        raise UserError(f"{path!r} is no path of a field; write it like .spec.replicas", where="FIELD")


def _below(here: Any, step: str | tuple[str, str], path: str) -> tuple[Any, str | int]:
    if isinstance(here, dict) and isinstance(step, str) and step in here:
        return here[step], step
    if isinstance(here, list):
        for index, item in enumerate(here):
            if step == str(index) or (isinstance(step, tuple) and _is_named(item, *step)):
                return item, index
    raise UserError(f"{path} is not in it: {_hint(here, step)}", where="FIELD")


def _is_named(item: Any, by: str, value: str) -> bool:
    return isinstance(item, dict) and str(item.get(by)) == value


def _hint(here: Any, step: str | tuple[str, str]) -> str:
    said = step if isinstance(step, str) else f'[{step[0]}="{step[1]}"]'
    if isinstance(here, list):
        return f"a list of {len(here)} has no {said}; name an element by its number or by its name"
    names = sorted(here) if isinstance(here, dict) else []
    near = difflib.get_close_matches(said, names, n=1)
    if near:
        return f"there is no {said}; did you mean {near[0]}?"
    known = ", ".join(names[:MOST_NAMES]) or "nothing"
    return f"there is no {said}; beside it there is {known}{' and more' if len(names) > MOST_NAMES else ''}"
