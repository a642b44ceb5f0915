"""Unescapes texts that clients escaped once more than their URL.

In: an escaped text. Out: the text, or UserError. Never: guesses what an incomplete escape means.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

from argosy.errors import UserError

_INCOMPLETE_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def unescape_query_text(text: str, where: str) -> str:
    """argo: Go's url.QueryUnescape; a plus sign is a space."""
    if _INCOMPLETE_ESCAPE.search(text):
        raise UserError("has an invalid escape; write a percent sign as %25", where=where)
    return unquote_plus(text)
