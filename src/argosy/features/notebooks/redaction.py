"""Redacts secrets in text for people: messages, cell outputs, Events, logs.

In: text, and optionally known secrets. Out: the text with placeholders. Never: leaves a known secret in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

REDACTED, REDACTED_SSH_KEY, REDACTED_BASE64 = "[REDACTED]", "[REDACTED-SSH-KEY]", "[REDACTED-BASE64]"
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.S)
_USER: Final = re.compile(r"(?<=://)[^\s/@]{1,500}@")
_FLAG: Final = re.compile(r"((?:--(?:password|token)|(?<=\s)-p)[ =])\s*\S+", re.I)
_NAMES: Final = r"PASSWORD|PASSWD|TOKEN(?![A-Z])|SECRET|_KEY|APIKEY|CREDENTIAL"  # `tokens: 512` is not a secret
_SETTING: Final = re.compile(rf"\b(\w*(?:{_NAMES})\w*\s*[=:]\s*)\S+", re.I)
_MIXED: Final = r"(?=[A-Za-z0-9+/]*[0-9])(?=[A-Za-z0-9+/]*[A-Z])"  # hex digests are lower case and may be shown
_LONG: Final = re.compile(rf"(?<![\w/+=-]){_MIXED}[A-Za-z0-9+/]{{40,}}={{0,2}}(?![\w/+=])")
_SECRET_WORDS: Final = ("password", "passwd", "token", "secret", "key", "credential", "auth", "bearer")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the longest secret first, so that a secret inside another one leaves no remainder."""
    for secret in sorted({value for value in secrets if len(value) > 3}, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = _PEM.sub(REDACTED_SSH_KEY, text)
    text = _USER.sub("", text)
    text = _FLAG.sub(rf"\1{REDACTED}", text)
    text = _SETTING.sub(rf"\1{REDACTED}", text)
    return _LONG.sub(REDACTED_BASE64, text)


def mask_secret(secret: str) -> str:
    """Show two characters of each end, to tell secrets apart."""
    return "***" if len(secret) <= 4 else f"{secret[:2]}***{secret[-2:]}"


def is_secret_name(name: str) -> bool:
    """True if a variable of this name may hold a secret."""
    lower = name.lower()
    return any(word in lower for word in _SECRET_WORDS)
