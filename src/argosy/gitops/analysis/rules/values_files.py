"""Rules about values files of Helm charts.

In: a repository. Out: violations. Never: considers templated values, or tiers of something other than images.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.analysis.repository import Item, Repository, Step
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Severity, Sight

_TIER: Final = re.compile(r"(?i)tier[-_]?[0-9a-z]+")
_ABOUT_IMAGES: Final = re.compile(r"(?i)image")
_MAX_DEPTH: Final = 20


def _tiered_images(repository: Repository) -> Iterator[Sight]:
    for item in repository.values_files:
        for path, images in _tiers(item.manifest, ()):
            yield from _differing(item, path, images)


def _tiers(values: Mapping[str, Any], path: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], dict[str, str]]]:
    """Yield every map with an image for each of several tiers, and its path."""
    is_below_tiers = bool(path) and str(path[-1]).lower() == "tiers"
    is_about_images = any(_ABOUT_IMAGES.search(str(step)) for step in path)
    images = {
        str(name): image
        for name, value in values.items()
        if (is_below_tiers or _TIER.fullmatch(str(name))) and (image := _image(value, is_about_images=is_about_images))
    }
    if len(images) > 1:
        yield path, images
    for name, value in values.items():
        if isinstance(value, dict) and len(path) < _MAX_DEPTH:
            yield from _tiers(value, (*path, str(name)))


def _image(value: Any, *, is_about_images: bool) -> str:
    """Return a tier's image: its string, its field `image`, or its repository with tag or digest; empty if none."""
    if isinstance(value, dict) and isinstance(value.get("image"), str | dict):
        return _image(value["image"], is_about_images=True)
    if isinstance(value, dict) and is_about_images and isinstance(value.get("repository"), str):
        parts = (value.get(name) for name in ("registry", "repository", "tag", "digest"))
        return ":".join(str(part) for part in parts if part)
    if not isinstance(value, str) or not is_about_images or "{{" in value:
        return ""
    return value.strip()


def _differing(item: Item, path: tuple[Step, ...], images: Mapping[str, str]) -> Iterator[Sight]:
    usual = Counter(images.values()).most_common(1)[0][0]
    first = next(tier for tier, image in images.items() if image == usual)
    for tier, image in images.items():
        if image != usual:
            field = ".".join(map(str, (*path, tier)))
            message = f"{field} differs from the image of {first}: packages of one tier may be missing in another"
            fix = f"use one tested image for all tiers: {usual}"
            yield Sight(item.at(*path, tier), message, fix, item.key.name, field)


RULES: Final = (
    Rule(
        "AGY309",
        Severity.INFO,
        "A values file has different images for tiers",
        "Packages that one tier was tested with may be missing in another, and each image must be maintained.",
        "The file is a values file by its name, or a chart was rendered with it; it names images by tier, and they"
        " differ.",
        "Use one tested image for all tiers; let tiers differ in their resources.",
        _tiered_images,
    ),
)
