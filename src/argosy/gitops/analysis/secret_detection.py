"""Detects secrets in variables, arguments and URLs.

In: a name and a value. Out: whether it is a secret, and the masked value. Never: returns a detected secret.
"""

from __future__ import annotations

import re
from typing import Any, Final

NAME: Final = re.compile(
    r"(?i)(?:pass|passwd|password|passphrase|token|secret|credentials?|htpasswd|api[-_.]?key|access[-_.]?key"
    r"|private[-_.]?key|\.dockerconfigjson|kubeconfig|id_rsa|tls\.key|ssh-privatekey|sshPrivateKey)$"
)
IN_URL: Final = re.compile(r"^[a-z][a-z0-9+.-]*://[^\s/:@]+:([^\s/@]+)@")
TOKENS: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36,}"
    r"|\bgithub_pat_\w{50,}|\bglpat-[\w-]{20,}|\bxox[abprs]-[\w-]{10,}|\bhf_[A-Za-z0-9]{30,}"
)
MASK: Final = "++++++++"


def is_secret(name: str, text: str) -> bool:
    """True if the name, or the format of a key or token, indicates a secret; values encrypted by SOPS are none."""
    if name.startswith("sops_") or text.startswith("ENC["):
        return False
    return NAME.search(name) is not None or TOKENS.search(text) is not None


def masked(name: str, value: Any) -> Any:
    """Return the value with secrets masked; arguments in a list are checked one by one."""
    if isinstance(value, list):
        flags = ["", *(str(each) for each in value)]
        return [_argument(before, each) for before, each in zip(flags, value, strict=False)]
    if not isinstance(value, str) or not value:
        return value
    return MASK if is_secret(name, value) or IN_URL.match(value) else value


def _argument(before: str, value: Any) -> Any:
    """Mask the value in `--token=x` and `--token x`."""
    if not isinstance(value, str):
        return value
    flag, equals, given = value.partition("=")
    if equals and flag.startswith("-"):
        return f"{flag}={masked(flag, given)}"
    named = before if before.startswith("-") and "=" not in before and not value.startswith("-") else ""
    return masked(named, value)
