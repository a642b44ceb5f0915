"""Detects credentials in repository URLs.

In: a URL as written. Out: True if it contains a secret. Never: repeats it.

argosy.yaml and Applications are committed, so a password must not get into them.
"""

from __future__ import annotations

import re
from typing import Final

PLACEHOLDER_URL: Final = "https://github.com/your-org/llmops-demo.git"  # in generated files, until the user replaces it
_AUTHORITY_ENDS: Final = re.compile(r"[/?#\\]")


def has_credentials(url: str) -> bool:
    """True if the URL has a password; for http and https also a user, which is often a token."""
    scheme, separator, remainder = url.strip().partition("://")
    if not separator:
        scheme, remainder = "", url.strip()  # git@HOST:PATH, or USER:PASSWORD@HOST
    authority = _AUTHORITY_ENDS.split(remainder, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if at:
        return ":" in user or scheme.lower() in ("http", "https")
    # A password that contains a slash ends the authority too early, so the port is not a number.
    port = authority.partition(":")[2]
    return bool(separator and port and not port.isdecimal() and "[" not in authority and "@" in remainder)
