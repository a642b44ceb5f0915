"""Booleans in the data of ConfigMaps.

In: text. Out: True or False, or None for a text that is neither. Never: raises.
"""

from __future__ import annotations

from collections.abc import Mapping

_WORDS = {"true": True, "false": False}


def parse_switch(text: str) -> bool | None:
    """Return the boolean that a text spells, in any case and with spaces around it; None if it spells none."""
    return _WORDS.get(text.strip().lower())


def read_switch(data: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Return the boolean of a key; the default where the key is missing, empty or spells no boolean."""
    value = parse_switch(data.get(key, ""))
    return default if value is None else value
