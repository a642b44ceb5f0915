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

MIN_SECRET_CHARACTERS, MAX_SECRET_BYTES = 6, 100_000  # characters of a value, bytes of a file
REDACTED: Final = "[REDACTED]"


class SecretRedactor:
    def __init__(self, folders: Iterable[str] = ()) -> None:
        values = {value for folder in folders for value in _read_secret_values(folder)}
        values |= {json.dumps(value)[1:-1] for value in values}  # as JSON escapes them
        self._values = sorted(values, key=len, reverse=True)  # longest first: one may contain another

    def redact_text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, REDACTED)
        return text

    def redact_results(self, results: dict[str, Any]) -> dict[str, Any]:
        if not self._values:
            return results
        redacted: dict[str, Any] = _redact_deep(results, self.redact_text)
        return redacted


def _redact_deep(value: Any, redact: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: _redact_deep(item, redact) for name, item in value.items()}
    return [_redact_deep(item, redact) for item in value] if isinstance(value, list | tuple) else value


def _read_secret_values(folder: str) -> Iterator[str]:
    """The content of every file, and every line of multi-line files, because outputs break lines differently."""
    for folder_path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                with open(os.path.join(folder_path, name), "rb") as file:
                    text = file.read(MAX_SECRET_BYTES).decode()
                for part in {text.strip(), *text.split("\n")}:
                    if len(part.strip()) >= MIN_SECRET_CHARACTERS:
                        yield part.strip()
