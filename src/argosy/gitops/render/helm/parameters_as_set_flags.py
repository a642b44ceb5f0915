"""Converts an Application's Helm parameters to `--set` flags.

In: names and values as users wrote them. Out: SetFlags. Never: reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from argosy.gitops.application import HelmParameter
from argosy.gitops.render.helm.engine_interface import SetFlag

_BARE_COMMA = re.compile(r"(?<!\\),")


def build_set_flags(parameters: Sequence[HelmParameter], substitute: Callable[[str], str]) -> list[SetFlag]:
    """argo: of parameters with the same name the last wins; all forceString parameters come after the others."""
    values = {parameter.name: parameter.value for parameter in parameters if not parameter.is_text}
    string_values = {parameter.name: parameter.value for parameter in parameters if parameter.is_text}
    return [
        *(SetFlag("set", name, escape_commas(substitute(value))) for name, value in values.items()),
        *(SetFlag("set-string", name, escape_commas(substitute(value))) for name, value in string_values.items()),
    ]


def escape_commas(value: str) -> str:
    """argo: a comma belongs to the value, unless the value is a list in braces."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return _BARE_COMMA.sub(r"\\,", value)
