"""The error of a script.

In: a message. Out: an error for the author of the script. Never: a stack trace, or more than `MAX_MESSAGE_LENGTH`.
"""

from __future__ import annotations

from argosy.errors import UserError

MAX_MESSAGE_LENGTH = 2000  # characters of the error of a script


class LuaFault(UserError):
    """A script does not compile, failed, or returned an invalid result."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE_LENGTH else message[:MAX_MESSAGE_LENGTH] + " …")
