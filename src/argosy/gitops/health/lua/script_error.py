"""What went wrong in a script: the one error of this package.

In: a text. Out: an error for the script's author. Never: a stack, or more than a few lines of it.
"""

from __future__ import annotations

from argosy.errors import UserError

LONGEST = 2000  # characters of a script's error that are told


class LuaFault(UserError):
    """A script does not compile, failed while it ran, or returned what cannot be understood."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= LONGEST else message[:LONGEST] + " …")
