"""Redacts secrets in text for people: known values, and text that looks like a secret.

In: texts, and values of Secrets. Out: the texts with placeholders. Never: leaves the remainder of a value that contains
another one; imports anything but the standard library: the notebook runner is shipped with this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

# One placeholder for each place where people see it; `MASK` of the package is the one of Argo CD.
REDACTED, REDACTED_SSH_KEY, REDACTED_BASE64 = "[REDACTED]", "[REDACTED-SSH-KEY]", "[REDACTED-BASE64]"
THREE_ASTERISKS, EIGHT_ASTERISKS = "*" * 3, "*" * 8
MIN_KNOWN_CHARACTERS: Final = 4  # shorter values occur in ordinary text

USER_INFO: Final = re.compile(r"(?<=://)[^\s/@]*@")
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.S)
_FLAG: Final = re.compile(r"((?:--(?:password|token)|(?<=\s)-p)[ =])\s*\S+", re.I)
_NAMES: Final = r"PASSWORD|PASSWD|TOKEN(?![A-Z])|SECRET|_KEY|APIKEY|CREDENTIAL"  # `tokens: 512` is not a secret
_SETTING: Final = re.compile(rf"\b(\w*(?:{_NAMES})\w*\s*[=:]\s*)\S+", re.I)
_MIXED: Final = r"(?=[A-Za-z0-9+/]*[0-9])(?=[A-Za-z0-9+/]*[A-Z])"  # hex digests are lower case and may be shown
_LONG: Final = re.compile(rf"(?<![\w/+=-]){_MIXED}[A-Za-z0-9+/]{{40,}}={{0,2}}(?![\w/+=])")
_HTTP_CREDENTIAL: Final = re.compile(
    r"(?i)\b(authorization\s*[:=]\s*(?:\w+\s+)?|(?:bearer|basic)\s+|(?:token|password)\s*[:=]\s*)\S+"
)


class ValueRedactor:
    """Replaces known values, the longest first: one may contain another."""

    def __init__(self, values: Iterable[str], placeholder: str = REDACTED) -> None:
        self._values = sorted({value for value in values if value}, key=len, reverse=True)
        self._placeholder = placeholder

    def redact_text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, self._placeholder)
        return text

    def redact_strings(self, value: Any) -> Any:
        """Redact all strings in a value of dicts and lists; the keys stay."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, Mapping):
            return {name: self.redact_strings(item) for name, item in value.items()}
        return [self.redact_strings(item) for item in value] if isinstance(value, list | tuple) else value


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Redact known secrets, and text that looks like one, in the output of programs."""
    text = ValueRedactor(secret for secret in secrets if len(secret) >= MIN_KNOWN_CHARACTERS).redact_text(text)
    text = _PEM.sub(REDACTED_SSH_KEY, text)
    text = USER_INFO.sub("", text)
    text = _FLAG.sub(rf"\1{REDACTED}", text)
    text = _SETTING.sub(rf"\1{REDACTED}", text)
    return _LONG.sub(REDACTED_BASE64, text)


def redact_http_credentials(text: str, placeholder: str) -> str:
    """Redact users in URLs, and credentials as HTTP clients and hosts print them."""
    return _HTTP_CREDENTIAL.sub(rf"\1{placeholder}", USER_INFO.sub("", text))


def list_lines(value: str, min_characters: int) -> set[str]:
    """Return a value and the lines of a multi-line value, because outputs break lines differently."""
    parts = (part.strip() for part in (value, *value.split("\n"), *value.splitlines()))
    return {part for part in parts if len(part) >= min_characters}


def list_words(value: str, min_characters: int) -> set[str]:
    """Return a value and the words in it, because an error message may quote one of them."""
    return {part for part in (value, *value.split()) if len(part) >= min_characters}


def list_json_forms(value: str) -> set[str]:
    """Return a value as written, and as JSON writes it in ASCII and in Unicode."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
