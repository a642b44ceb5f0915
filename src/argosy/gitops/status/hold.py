"""A hold: automated syncs pause until somebody releases them.

In, out: the value of an annotation of the Application. Never: a hold taken for none because it cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from argosy.annotations import HOLD


class Hold(NamedTuple):
    """Who asked for it, why, when, and at which revision the application is held."""

    reason: str = ""
    by: str = ""
    at: str = ""  # RFC 3339
    revision: str = ""


def hold_text(hold: Hold) -> str:
    return json.dumps(hold._asdict(), ensure_ascii=False)


def told(hold: Hold, name: str) -> str:
    """Who holds it, since when and why, and how that ends."""
    who, since = f" by {hold.by}" if hold.by else "", f" since {hold.at}" if hold.at else ""
    return f"held{who}{since}: {hold.reason or 'no reason is given'}; argosy app release {name} ends it"


def read_hold(annotations: Mapping[str, str]) -> Hold | None:
    """What is no JSON is a reason that somebody wrote by hand; it holds, too."""
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
