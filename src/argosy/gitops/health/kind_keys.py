"""Parses the names of kinds in settings.

In: a part of a key. Out: the pattern "group/Kind" (core: "Kind"), or what is wrong with it. Never: reads the value.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

WILD: Final = re.compile(r"[*?\[{]")
EVERYTHING: Final = "*/*"
_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_CORE: Final = ("core", "v1", "")


class Named(NamedTuple):
    """A pattern, or what is wrong with the name; then the pattern is the one that was probably meant."""

    pattern: str = ""
    fault: str = ""


def is_wild(pattern: str) -> bool:
    return WILD.search(pattern) is not None


def from_key(name: str, prefix: str = "") -> Named:
    """Parse `<group>_<Kind>`, or `<Kind>` for a core kind, after a prefix such as `resource.customizations.health.`."""
    # argo: "all" means every kind with a group
    if name == "all":
        return Named(EVERYTHING)
    if is_wild(name):
        wild = "a key of a ConfigMap cannot contain wildcards; use the map `resource.customizations` for them"
        return Named(fault=wild)
    group, kind = _apart(name)
    # argo: splits at every underscore, and rejects all customizations if there is more than one
    if name == joined(group, kind) and (not group or _GROUP.fullmatch(group)) and _KIND.fullmatch(kind):
        return Named(key_text(group, kind))
    return _wrong(name, (group, kind), joined(group, kind), prefix)


def from_map(name: str) -> Named:
    """Parse a key of the map `resource.customizations`: `<group>/<Kind>`, core kinds `<Kind>`, wildcards allowed."""
    if is_wild(name):
        return Named(name)
    group, kind = _apart(name)
    right = key_text(group, kind)
    if name == right and (not group or _GROUP.fullmatch(group)) and _KIND.fullmatch(kind):
        return Named(name)
    return _wrong(name, (group, kind), right)


def key_text(group: str, kind: str) -> str:
    """Render a kind as `apps/Deployment`, or `Pod` in the core group: for messages, folders and the older map."""
    return f"{group}/{kind}" if group else kind


def joined(group: str, kind: str) -> str:
    """Render a kind as in keys of a ConfigMap: `apps_Deployment`, or `Pod` in the core group."""
    return f"{group}_{kind}" if group else kind


def _apart(name: str) -> tuple[str, str]:
    """Guess group and kind: the part with a capital initial is the kind."""
    parts = [part for part in re.split(r"[/_]", name) if part and not re.fullmatch(r"v\d+((alpha|beta)\d+)?", part)]
    if len(parts) == 1 and "." in parts[0]:
        words = parts[0].split(".")
        if words[0][:1].isupper():
            return ".".join(words[1:]), words[0]
        if words[-1][:1].isupper():
            return ".".join(words[:-1]), words[-1]
    if len(parts) == 2 and parts[0][:1].isupper() and not parts[1][:1].isupper():
        parts.reverse()
    *before, kind = parts or [name]
    group = before[0] if before else ""
    return ("" if group in _CORE else group), kind


def _wrong(name: str, of: tuple[str, str], right: str, prefix: str = "") -> Named:
    fits = _KIND.fullmatch(of[1]) is not None and right != name
    what = f"{name!r} is not a valid kind and is ignored" if name else "the kind is missing"
    advice = f"write {prefix}{right}" if fits else "write group and kind as in the object's apiVersion and kind"
    return Named("/".join(filter(None, of)) if fits else "", f"{what}; {advice}")
