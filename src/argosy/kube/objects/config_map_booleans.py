"""Parses booleans in the data of ConfigMaps.

In: text. Out: True or False, or None for any other text. Never: raises.
"""

from __future__ import annotations

from collections.abc import Mapping

_BOOLEAN_WORDS = {"true": True, "false": False}


def parse_boolean(text: str) -> bool | None:
    """Parse "true" or "false" in any case, with surrounding spaces; None for any other text."""
    return _BOOLEAN_WORDS.get(text.strip().lower())


def read_boolean(data: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Return the boolean value of a key; the default if the key is missing, empty or not a boolean."""
    value = parse_boolean(data.get(key, ""))
    return default if value is None else value
