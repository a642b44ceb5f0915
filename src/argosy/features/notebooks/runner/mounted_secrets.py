"""Reads the values of Secrets that are mounted into the Pod.

In: folders. Out: values, as written and as JSON escapes them. Never: fails because a file cannot be read; returns short
values, which occur in ordinary text.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from argosy.observability.redaction.text_redaction import list_json_forms, list_lines

MIN_SECRET_CHARACTERS, MAX_SECRET_BYTES = 6, 100_000  # characters of a value, bytes of a file


def read_mounted_secrets(folders: Iterable[str]) -> set[str]:
    texts = (text for folder in folders for text in _read_files(folder))
    return {
        form for text in texts for line in list_lines(text, MIN_SECRET_CHARACTERS) for form in list_json_forms(line)
    }


def _read_files(folder: str) -> Iterator[str]:
    for folder_path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                with open(os.path.join(folder_path, name), "rb") as file:
                    text = file.read(MAX_SECRET_BYTES).decode()
                yield text
