"""Parses the names of kinds in settings.

In: a part of a key. Out: the pattern "group/Kind" (core: "Kind"), or what is wrong with it. Never: reads the value.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

WILDCARD: Final = re.compile(r"[*?\[{]")
ALL_KINDS_PATTERN: Final = "*/*"
_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_CORE_GROUP_NAMES: Final = ("core", "v1", "")


class ParsedKindName(NamedTuple):
    """A pattern, or what is wrong with the name; then the pattern is the one that was probably meant."""

    pattern: str = ""
    fault: str = ""


def has_wildcard(pattern: str) -> bool:
    return WILDCARD.search(pattern) is not None


def parse_key_kind(name: str, prefix: str = "") -> ParsedKindName:
    """Parse `<group>_<Kind>`, or `<Kind>` for a core kind, after a prefix such as `resource.customizations.health.`."""
    # argo: "all" means every kind with a group
    if name == "all":
        return ParsedKindName(ALL_KINDS_PATTERN)
    if has_wildcard(name):
        fault = "a key of a ConfigMap cannot contain wildcards; use the map `resource.customizations` for them"
        return ParsedKindName(fault=fault)
    group, kind = _guess_kind(name)
    # argo: splits at every underscore, and rejects all customizations if there is more than one
    if name == render_key_kind(group, kind) and (not group or _GROUP.fullmatch(group)) and _KIND.fullmatch(kind):
        return ParsedKindName(render_kind(group, kind))
    return _report_invalid(name, (group, kind), render_key_kind(group, kind), prefix)


def parse_map_kind(name: str) -> ParsedKindName:
    """Parse a key of the map `resource.customizations`: `<group>/<Kind>`, core kinds `<Kind>`, wildcards allowed."""
    if has_wildcard(name):
        return ParsedKindName(name)
    group, kind = _guess_kind(name)
    expected = render_kind(group, kind)
    if name == expected and (not group or _GROUP.fullmatch(group)) and _KIND.fullmatch(kind):
        return ParsedKindName(name)
    return _report_invalid(name, (group, kind), expected)


def render_kind(group: str, kind: str) -> str:
    """Render a kind as `apps/Deployment`, or `Pod` in the core group: for messages, folders and the older map."""
    return f"{group}/{kind}" if group else kind


def render_key_kind(group: str, kind: str) -> str:
    """Render a kind as in keys of a ConfigMap: `apps_Deployment`, or `Pod` in the core group."""
    return f"{group}_{kind}" if group else kind


def _guess_kind(name: str) -> tuple[str, str]:
    """Guess group and kind: the part with a capital initial is the kind."""
    parts = [part for part in re.split(r"[/_]", name) if part and not re.fullmatch(r"v\d+((alpha|beta)\d+)?", part)]
    if len(parts) == 1 and "." in parts[0]:
        labels = parts[0].split(".")
        if labels[0][:1].isupper():
            return ".".join(labels[1:]), labels[0]
        if labels[-1][:1].isupper():
            return ".".join(labels[:-1]), labels[-1]
    if len(parts) == 2 and parts[0][:1].isupper() and not parts[1][:1].isupper():
        parts.reverse()
    *before, kind = parts or [name]
    group = before[0] if before else ""
    return ("" if group in _CORE_GROUP_NAMES else group), kind


def _report_invalid(name: str, guess: tuple[str, str], expected: str, prefix: str = "") -> ParsedKindName:
    has_guess = _KIND.fullmatch(guess[1]) is not None and expected != name
    problem = f"{name!r} is not a valid kind and is ignored" if name else "the kind is missing"
    advice = f"write {prefix}{expected}" if has_guess else "write group and kind as in the object's apiVersion and kind"
    return ParsedKindName("/".join(filter(None, guess)) if has_guess else "", f"{problem}; {advice}")
