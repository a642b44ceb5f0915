"""Removes values of Secrets from the output of a run.

In: folders of mounted Secrets, texts. Out: the texts without these values. Never: fails because a file cannot be read;
removes short values, which occur in ordinary text.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

SHORTEST, LONGEST = 6, 100_000  # characters of a value, bytes of a file
REDACTED: Final = "[REDACTED]"


class Cleaner:
    def __init__(self, folders: Iterable[str] = ()) -> None:
        found = {value for folder in folders for value in _values(folder)}
        found |= {json.dumps(value)[1:-1] for value in found}  # as JSON escapes them
        self._values = sorted(found, key=len, reverse=True)  # longest first: one may contain another

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, REDACTED)
        return text

    def results(self, results: dict[str, Any]) -> dict[str, Any]:
        if not self._values:
            return results
        cleaned: dict[str, Any] = _deep(results, self.text)
        return cleaned


def _deep(value: Any, clean: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {name: _deep(each, clean) for name, each in value.items()}
    return [_deep(each, clean) for each in value] if isinstance(value, list | tuple) else value


def _values(folder: str) -> Iterator[str]:
    """The content of every file, and every line of multi-line files, because outputs break lines differently."""
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                with open(os.path.join(at, name), "rb") as file:
                    text = file.read(LONGEST).decode()
                for part in {text.strip(), *text.split("\n")}:
                    if len(part.strip()) >= SHORTEST:
                        yield part.strip()
