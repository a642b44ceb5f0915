"""A hold pauses automated syncs until it is released.

In, out: the value of an annotation of the Application. Never: ignores a hold because it cannot be parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from argosy.annotations import HOLD


class SyncHold(NamedTuple):
    """Who requested the hold, why, when, and at which revision."""

    reason: str = ""
    by: str = ""
    at: str = ""  # RFC 3339
    revision: str = ""


def hold_to_annotation(hold: SyncHold) -> str:
    return json.dumps(hold._asdict(), ensure_ascii=False)


def describe_hold(hold: SyncHold, app_name: str) -> str:
    """Describe who holds it, since when and why, and the command that releases it."""
    by_text, since_text = f" by {hold.by}" if hold.by else "", f" since {hold.at}" if hold.at else ""
    return f"held{by_text}{since_text}: {hold.reason or 'no reason is given'}; argosy app release {app_name} ends it"


def read_hold(annotations: Mapping[str, str]) -> SyncHold | None:
    """Read the hold; text that is not JSON is a reason written by hand, and holds too."""
    text = annotations.get(HOLD)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return SyncHold(reason=text)
    if not isinstance(value, dict):
        return SyncHold(reason=text)
    return SyncHold(*(str(value.get(name) or "") for name in SyncHold._fields))
