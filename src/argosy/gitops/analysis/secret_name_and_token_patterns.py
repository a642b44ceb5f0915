"""Detects secrets in variables, arguments and URLs.

In: a name and a value. Out: whether it is a secret, and the masked value. Never: returns a detected secret.
"""

from __future__ import annotations

import re
from typing import Any, Final

from argosy.observability.redaction import MASK

SECRET_NAME: Final = re.compile(
    r"(?i)(?:pass|passwd|password|passphrase|token|secret|credentials?|htpasswd|api[-_.]?key|access[-_.]?key"
    r"|private[-_.]?key|\.dockerconfigjson|kubeconfig|id_rsa|tls\.key|ssh-privatekey|sshPrivateKey)$"
)
URL_PASSWORD: Final = re.compile(r"^[a-z][a-z0-9+.-]*://[^\s/:@]+:([^\s/@]+)@")
TOKEN_FORMATS: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36,}"
    r"|\bgithub_pat_\w{50,}|\bglpat-[\w-]{20,}|\bxox[abprs]-[\w-]{10,}|\bhf_[A-Za-z0-9]{30,}"
)


def is_secret(name: str, text: str) -> bool:
    """True if the name, or the format of a key or token, indicates a secret; values encrypted by SOPS are none."""
    if name.startswith("sops_") or text.startswith("ENC["):
        return False
    return SECRET_NAME.search(name) is not None or TOKEN_FORMATS.search(text) is not None


def mask_value(name: str, value: Any) -> Any:
    """Return the value with secrets masked; arguments in a list are checked one by one."""
    if isinstance(value, list):
        flags = ["", *(str(argument) for argument in value)]
        return [_mask_argument(previous, argument) for previous, argument in zip(flags, value, strict=False)]
    if not isinstance(value, str) or not value:
        return value
    return MASK if is_secret(name, value) or URL_PASSWORD.match(value) else value


def _mask_argument(previous: str, value: Any) -> Any:
    """Mask the value in `--token=x` and `--token x`."""
    if not isinstance(value, str):
        return value
    flag, equals, flag_value = value.partition("=")
    if equals and flag.startswith("-"):
        return f"{flag}={mask_value(flag, flag_value)}"
    flag_name = previous if previous.startswith("-") and "=" not in previous and not value.startswith("-") else ""
    return mask_value(flag_name, value)
