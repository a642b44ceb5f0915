"""Deep links (`application.links`, `resource.links`) of Applications and their objects.

In: `application.links` or `resource.links` of argocd-cm, values. Out: Link values. Never: a link that is not http or
https; fails because another entry is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from argosy.errors import UserError
from argosy.gitops.status.wire_format import mappings
from argosy.kube.objects import load
from argosy.languages.expr import compile_expression
from argosy.languages.go_templates import compile_template

MOST: Final = 100
STEPS: Final = 20_000
CHARACTERS: Final = 4_000


class Link(NamedTuple):
    url: str
    title: str
    description: str = ""
    icon: str = ""


def links_of(text: str, values: Mapping[str, Any], where: str) -> tuple[list[Link], list[str]]:
    """Return the links that apply, and the errors of invalid entries."""
    try:
        entries = mappings(load(text, where=where)) if text.strip() else []
    except UserError as error:
        return [], [str(error)]
    found: list[Link] = []
    faults: list[str] = []
    for place, entry in enumerate(entries[:MOST]):
        try:
            link = _link(entry, values)
        except UserError as error:
            faults.append(f"{where}: entry {place + 1}: {error}")
            continue
        if link is not None:
            found.append(link)
    return found, faults


def _link(entry: Mapping[str, Any], values: Mapping[str, Any]) -> Link | None:
    condition = entry.get("if")
    if condition and compile_expression(str(condition)).evaluate(values, steps=STEPS) is not True:
        return None
    url = compile_template(str(entry.get("url") or "")).render(dict(values), steps=STEPS, characters=CHARACTERS)
    if not _is_safe(url):
        raise UserError("the link is neither http nor https; use such a URL")
    texts = (str(entry.get(name) or "") for name in ("title", "description", "icon.class"))
    return Link(url, *texts)


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and url.isprintable() and " " not in url
