"""Stores equal texts of manifests once: of an Application with its status, more than half of the texts are copies.

In: manifests that are kept for long. Out: the same manifests with less memory. Never: changes a value; keeps a text of
a Secret, which must not outlive it, or more than MAX_TEXTS texts.
"""

from __future__ import annotations

from typing import Any, Final

MAX_TEXTS: Final = 20_000
MAX_TEXT_LENGTH: Final = 200  # longer ones are rarely equal
DISTINCT_FIELDS: Final = frozenset({"managedFields", "resourceVersion", "uid"})  # without texts that repeat


class SharedTexts:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def share(self, manifest: dict[str, Any]) -> None:
        """Replace texts by equal ones of other manifests, in place. Call it before others read the manifest."""
        if manifest.get("kind") == "Secret":
            return
        self._share_in_mapping(manifest)
        if len(self._texts) > MAX_TEXTS:
            self._texts.clear()  # texts in use stay shared

    def _share_in_mapping(self, mapping: dict[str, Any]) -> None:
        find_equal = self._texts.setdefault
        for name, value in mapping.items():
            if name in DISTINCT_FIELDS:
                continue
            value_type = type(value)  # subclasses of str and dict are left alone
            if value_type is str:
                if len(value) <= MAX_TEXT_LENGTH:
                    mapping[name] = find_equal(value, value)
            elif value_type is dict:
                self._share_in_mapping(value)
            elif value_type is list:
                for index, item in enumerate(value):
                    if type(item) is dict:
                        self._share_in_mapping(item)
                    elif type(item) is str and len(item) <= MAX_TEXT_LENGTH:
                        value[index] = find_equal(item, item)


SHARED_TEXTS: Final = SharedTexts()  # of all caches of this process: live and rendered manifests have the same texts
