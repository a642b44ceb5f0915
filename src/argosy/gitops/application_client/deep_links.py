"""Deep links (`application.links`, `resource.links`) of Applications and their objects.

In: `application.links` or `resource.links` of argocd-cm, values. Out: Link values. Never: a link that is not http or
https; fails because another entry is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from argosy.annotations import MANAGED_BY_URL
from argosy.errors import UserError
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import read_yaml
from argosy.languages.expr import compile_expression
from argosy.languages.go_templates import compile_template

MAX_LINKS: Final = 100
MAX_EVALUATION_STEPS: Final = 20_000
MAX_URL_CHARACTERS: Final = 4_000
_NO_WEB_ADDRESS: Final = "invalid managed-by URL: URL must include http or https protocol"


class DeepLink(NamedTuple):
    url: str
    title: str
    description: str = ""
    icon: str = ""


def find_managed_by_url(app: Mapping[str, Any]) -> str:
    """Return the URL of the annotation managed-by-url of an Application; empty without one, or if it is invalid."""
    return "" if describe_managed_by_url_problem(app) else _read_managed_by_url(app)


def describe_managed_by_url_problem(app: Mapping[str, Any]) -> str:
    """Return why the annotation managed-by-url of an Application is invalid, in Argo CD's words; empty if it is not."""
    url = _read_managed_by_url(app)
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        return f"invalid managed-by URL: failed to parse URL: {error}"
    return "" if not url or scheme in ("http", "https") else _NO_WEB_ADDRESS


def _read_managed_by_url(app: Mapping[str, Any]) -> str:
    url = as_mapping(as_mapping(app.get("metadata")).get("annotations")).get(MANAGED_BY_URL)
    return url if isinstance(url, str) else ""


def render_links(text: str, values: Mapping[str, Any], where: str) -> tuple[list[DeepLink], list[str]]:
    """Return the links that apply, and the errors of invalid entries."""
    try:
        entries = as_mappings(read_yaml(text, where=where)) if text.strip() else []
    except UserError as error:
        return [], [str(error)]
    links: list[DeepLink] = []
    faults: list[str] = []
    for index, entry in enumerate(entries[:MAX_LINKS]):
        try:
            link = _render_link(entry, values)
        except UserError as error:
            faults.append(f"{where}: entry {index + 1}: {error}")
            continue
        if link is not None:
            links.append(link)
    return links, faults


def _render_link(entry: Mapping[str, Any], values: Mapping[str, Any]) -> DeepLink | None:
    condition = entry.get("if")
    if condition and compile_expression(str(condition)).evaluate(values, steps=MAX_EVALUATION_STEPS) is not True:
        return None
    url = compile_template(str(entry.get("url") or "")).render(
        dict(values), steps=MAX_EVALUATION_STEPS, characters=MAX_URL_CHARACTERS
    )
    if not _is_safe(url):
        raise UserError("the link is neither http nor https; use such a URL")
    texts = (str(entry.get(name) or "") for name in ("title", "description", "icon.class"))
    return DeepLink(url, *texts)


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and url.isprintable() and " " not in url
