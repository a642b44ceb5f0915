"""Converts an Application's Helm parameters to `--set` flags.

In: names and values as users wrote them. Out: SetFlags. Never: reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from argosy.gitops.application import Parameter
from argosy.gitops.render.helm.release import Setting

_BARE_COMMA = re.compile(r"(?<!\\),")


def settings_of(parameters: Sequence[Parameter], substitute: Callable[[str], str]) -> list[Setting]:
    """argo: of parameters with the same name the last wins; all forceString parameters come after the others."""
    plain = {each.name: each.value for each in parameters if not each.is_text}
    texts = {each.name: each.value for each in parameters if each.is_text}
    return [
        *(Setting("set", name, escaped(substitute(value))) for name, value in plain.items()),
        *(Setting("set-string", name, escaped(substitute(value))) for name, value in texts.items()),
    ]


def escaped(value: str) -> str:
    """argo: a comma belongs to the value, unless the value is a list in braces."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return _BARE_COMMA.sub(r"\\,", value)
