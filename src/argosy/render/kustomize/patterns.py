"""Regular expressions of targets and images. In: text of any origin. Out: a pattern. Never: one that runs for ages."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from argosy.model.errors import RenderError

_LONGEST: Final = 1000
# Repeats of repeats take Python exponential time, but not Go.
_NESTED = re.compile(r"\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)+(?:[+*]|\{\d+,?\d{2,}\})")

# k8s: these have no meaning for Go, which refuses them.
_FOREIGN = re.compile(r"\(\?(?:[=!(#>]|<[=!]|P[=>])|(?<!\\)(?:\\\\)*\\[1-9]|(?<!\\)[*+?}]\+")
_CLASSES: Final = {
    "[:alpha:]": "A-Za-z", "[:digit:]": "0-9", "[:alnum:]": "0-9A-Za-z", "[:lower:]": "a-z", "[:upper:]": "A-Z",
    "[:space:]": r"\s", "[:word:]": r"\w", "[:xdigit:]": "0-9A-Fa-f", "[:punct:]": r"!-/:-@\[-`{-~",
    "[:blank:]": r" \t",
}  # fmt: skip


@lru_cache(1024)
def pattern(text: str, where: str, rest: str = "") -> re.Pattern[str]:
    """The pattern, with one of our own behind it."""
    if len(text) > _LONGEST or _NESTED.search(text):
        raise RenderError(f"the pattern {text[:80]!r} is too costly: repeat no group that repeats", where=where)
    if _FOREIGN.search(text):
        message = f"{text!r} looks around or back, which patterns here cannot: write it without"
        raise RenderError(message, where=where)
    for name, range_ in _CLASSES.items() if "[:" in text else ():
        text = text.replace(name, range_)
    try:
        return re.compile(text + rest, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise RenderError(f"{text!r} is no regular expression ({error}): correct it", where=where) from error
