"""A hold pauses automated syncs until it is released.

In, out: the value of an annotation of the Application. Never: ignores a hold because it cannot be parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from argosy.annotations import HOLD


class Hold(NamedTuple):
    """Who requested the hold, why, when, and at which revision."""

    reason: str = ""
    by: str = ""
    at: str = ""  # RFC 3339
    revision: str = ""


def hold_text(hold: Hold) -> str:
    return json.dumps(hold._asdict(), ensure_ascii=False)


def told(hold: Hold, name: str) -> str:
    """Describe who holds it, since when and why, and the command that releases it."""
    who, since = f" by {hold.by}" if hold.by else "", f" since {hold.at}" if hold.at else ""
    return f"held{who}{since}: {hold.reason or 'no reason is given'}; argosy app release {name} ends it"


def read_hold(annotations: Mapping[str, str]) -> Hold | None:
    """Read the hold; text that is not JSON is a reason written by hand, and holds too."""
    text = annotations.get(HOLD)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Hold(reason=text)
    if not isinstance(value, dict):
        return Hold(reason=text)
    return Hold(*(str(value.get(name) or "") for name in Hold._fields))
