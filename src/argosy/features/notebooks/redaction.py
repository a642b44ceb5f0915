"""Secrets taken out of what people read: messages, outputs of cells, Events, logs.

In: text, perhaps secrets that are known. Out: the text with words in their place. Never: a secret that it was told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

REDACTED, KEY, ENCODED = "[REDACTED]", "[REDACTED-SSH-KEY]", "[REDACTED-BASE64]"
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.S)
_USER: Final = re.compile(r"(?<=://)[^\s/@]{1,500}@")
_FLAG: Final = re.compile(r"((?:--(?:password|token)|(?<=\s)-p)[ =])\s*\S+", re.I)
_NAMES: Final = r"PASSWORD|PASSWD|TOKEN(?![A-Z])|SECRET|_KEY|APIKEY|CREDENTIAL"  # `tokens: 512` is no secret
_SETTING: Final = re.compile(rf"\b(\w*(?:{_NAMES})\w*\s*[=:]\s*)\S+", re.I)
_MIXED: Final = r"(?=[A-Za-z0-9+/]*[0-9])(?=[A-Za-z0-9+/]*[A-Z])"  # digests are in small letters, and may be shown
_LONG: Final = re.compile(rf"(?<![\w/+=-]){_MIXED}[A-Za-z0-9+/]{{40,}}={{0,2}}(?![\w/+=])")
_TELLING: Final = ("password", "passwd", "token", "secret", "key", "credential", "auth", "bearer")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The longest secret first, so that one within another leaves nothing behind."""
    for secret in sorted({each for each in secrets if len(each) > 3}, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = _PEM.sub(KEY, text)
    text = _USER.sub("", text)
    text = _FLAG.sub(rf"\1{REDACTED}", text)
    text = _SETTING.sub(rf"\1{REDACTED}", text)
    return _LONG.sub(ENCODED, text)


def masked(secret: str) -> str:
    """Two characters of each end, for telling one from another."""
    return "***" if len(secret) <= 4 else f"{secret[:2]}***{secret[-2:]}"


def is_telling(name: str) -> bool:
    """Whether a variable of this name holds what must not be shown."""
    lower = name.lower()
    return any(word in lower for word in _TELLING)
