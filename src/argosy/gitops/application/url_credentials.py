"""Addresses of repositories. In: one, as people write it. Out: whether it holds a secret. Never: repeats it.

What stands in argosy.yaml or in an Application is committed, so a password must not get there.
"""

from __future__ import annotations

import re
from typing import Final

PLACEHOLDER: Final = "https://github.com/your-org/llmops-demo.git"  # in what we hand out, until somebody puts theirs
_AUTHORITY_ENDS: Final = re.compile(r"[/?#\\]")


def address_with_secret(url: str) -> bool:
    """Of http and https any user counts, because a token is often given as one; else only a password does."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "", url.strip()  # git@HOST:PATH, or somebody's USER:PASSWORD@HOST
    authority = _AUTHORITY_ENDS.split(rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if at:
        return ":" in user or scheme.lower() in ("http", "https")
    # a password with a slash in it ends the authority too early: what should be a port is none
    port = authority.partition(":")[2]
    return bool(separator and port and not port.isdecimal() and "[" not in authority and "@" in rest)
