"""Parses network ports in the data of ConfigMaps.

In: text such as `443, 5432`, or a boolean. Out: ports, or None for any other text. Never: raises.
"""

from __future__ import annotations

import re
from typing import Final

from argosy.kube.objects.config_map_booleans import parse_boolean

WEB_PORTS: Final = (80, 443)
MAX_PORT: Final = 65535


def parse_ports(text: str) -> tuple[int, ...] | None:
    """Parse allowed ports: `true` means 80 and 443, `false` and an empty text mean none."""
    is_enabled = parse_boolean(text)
    if is_enabled is not None:
        return WEB_PORTS if is_enabled else ()
    words = text.replace(",", " ").split()
    if not all(re.fullmatch(r"[0-9]{1,5}", word) and 0 < int(word) <= MAX_PORT for word in words):
        return None
    return tuple(map(int, words))
