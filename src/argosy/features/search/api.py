"""API route of the command palette: search pages, Applications, models and notebooks.

In: a request. Out: JSON. Never: returns a name that the caller may not see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.live.inference_service import INFERENCE_SERVICE
from argosy.kube.names import GroupKind
from argosy.web.api.json_schemas import TEXT, fields, many
from argosy.web.object_lookup import is_at_home
from argosy.web.owned_objects import JOB, visible
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, Parameter, Route

MOST: Final = 20
LONGEST: Final = 200  # characters of the query
PAGES: Final = (
    ("Apps", "/apps", "all Applications"),
    ("Models", "/models", "served models"),
    ("Notebooks", "/notebooks", "notebooks and their runs"),
    ("Environments", "/environments", "dev, staging, production"),
    ("Activity", "/activity", "recent events"),
    ("Settings", "/settings", "projects, repositories, clusters, health"),
    ("Doctor", "/doctor", "problems and fixes"),
    ("Accounts", "/settings/accounts", "accounts and their tokens"),
    ("Repositories", "/settings/repositories", "Git repositories"),
    ("Health checks", "/settings/health", "rules, and a test form"),
    ("Appearance", "/settings/appearance", "light, dark, keys"),
    ("API", "/api/docs", "REST API reference"),
)
PART: Final = re.compile(r"[\s./-]+")


async def palette(asked: Asked) -> Json:
    """Find items that contain all words; items with a part that starts with the first word come first."""
    words = asked.query.text("q")[:LONGEST].lower().split()
    found = [each for each in _all(asked, words) if all(word in each["search"] for word in words)]
    if words:
        found.sort(key=lambda each: not any(part.startswith(words[0]) for part in PART.split(each["search"])))
    return Json({"items": [{k: v for k, v in each.items() if k != "search"} for each in found[:MOST]]})


def _all(asked: Asked, words: list[str]) -> Iterator[dict[str, Any]]:
    for text, url, about in PAGES:
        yield _item("page", text, url, about)
    control = asked.site.desk.control
    for row in asked.site.lookout.applications():
        if words and not any(word in row.name.lower() for word in words):
            continue
        manifest = asked.site.lookout.cache.get(row.key)
        if manifest is None or not is_at_home(asked, manifest):
            continue
        if asked.may("applications", "get", row.permitted_as(control)):
            yield _item("app", row.name, f"/apps/{row.namespace}/{row.name}", f"{row.sync}, {row.health}")
    yield from _objects(asked, INFERENCE_SERVICE, "model", "models")
    yield from _objects(asked, JOB, "notebook", "notebooks")


def _objects(asked: Asked, kind: GroupKind, word: str, place: str) -> Iterator[dict[str, Any]]:
    for manifest in visible(asked, kind):
        metadata = manifest["metadata"]
        namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
        yield _item(word, name, f"/{place}/{namespace}/{name}", namespace)


def _item(kind: str, text: str, url: str, about: str) -> dict[str, Any]:
    return {"kind": kind, "text": text, "url": url, "about": about, "search": f"{kind} {text} {about}".lower()}


ROUTES = (
    Route(
        "GET", "/api/argosy/v1/palette", Filtered("applications", "get"), palette, "Search by name.",
        query=(Parameter("q", "Search words."),), tag="argosy",
        gives=fields("items", items=many(fields("kind", "text", "url", kind=TEXT, text=TEXT, url=TEXT, about=TEXT))),
    ),
)  # fmt: skip
