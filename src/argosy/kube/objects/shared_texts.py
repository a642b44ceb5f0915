"""Stores equal texts of manifests once: of an Application with its status, more than half of the texts are copies.

In: manifests that are kept for long. Out: the same manifests with less memory. Never: changes a value; keeps more than
MAX_TEXTS texts alive.
"""

from __future__ import annotations

from typing import Any, Final

MAX_TEXTS: Final = 20_000
MAX_TEXT_LENGTH: Final = 200  # longer ones are rarely equal


class SharedTexts:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    @property
    def count(self) -> int:
        return len(self._texts)

    def share(self, manifest: dict[str, Any]) -> None:
        """Replace texts by equal ones of other manifests, in place: a reader cannot see it."""
        if len(self._texts) >= MAX_TEXTS:
            self._texts.clear()  # texts in use stay shared
        self._share_in_mapping(manifest)

    def _share_in_mapping(self, mapping: dict[str, Any]) -> None:
        find_equal = self._texts.setdefault
        for name, value in mapping.items():
            kind = type(value)
            if kind is str:
                if len(value) <= MAX_TEXT_LENGTH:
                    mapping[name] = find_equal(value, value)
            elif kind is dict:
                self._share_in_mapping(value)
            elif kind is list:
                for index, item in enumerate(value):
                    if type(item) is dict:
                        self._share_in_mapping(item)
                    elif type(item) is str and len(item) <= MAX_TEXT_LENGTH:
                        value[index] = find_equal(item, item)
