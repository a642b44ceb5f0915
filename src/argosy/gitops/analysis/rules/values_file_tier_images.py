"""Rules about values files of Helm charts.

In: a repository. Out: violations. Never: considers templated values, or tiers of something other than images.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation

_TIER_NAME: Final = re.compile(r"(?i)tier[-_]?[0-9a-z]+")
_IMAGE_WORD: Final = re.compile(r"(?i)image")
_MAX_DEPTH: Final = 20


def _find_tiered_images(repository: RepositoryView) -> Iterator[Violation]:
    for item in repository.values_files:
        for path, images in _list_tier_images(item.manifest, ()):
            yield from _check_tier_images(item, path, images)


def _list_tier_images(
    values: Mapping[str, Any], path: tuple[PathStep, ...]
) -> Iterator[tuple[tuple[PathStep, ...], dict[str, str]]]:
    """Yield every map with an image for each of several tiers, and its path."""
    is_below_tiers = bool(path) and str(path[-1]).lower() == "tiers"
    is_about_images = any(_IMAGE_WORD.search(str(step)) for step in path)
    images = {
        str(name): image
        for name, value in values.items()
        if (is_below_tiers or _TIER_NAME.fullmatch(str(name)))
        and (image := _read_image(value, is_about_images=is_about_images))
    }
    if len(images) > 1:
        yield path, images
    for name, value in values.items():
        if isinstance(value, dict) and len(path) < _MAX_DEPTH:
            yield from _list_tier_images(value, (*path, str(name)))


def _read_image(value: Any, *, is_about_images: bool) -> str:
    """Return a tier's image: its string, its field `image`, or its repository with tag or digest; empty if none."""
    if isinstance(value, dict) and isinstance(value.get("image"), str | dict):
        return _read_image(value["image"], is_about_images=True)
    if isinstance(value, dict) and is_about_images and isinstance(value.get("repository"), str):
        parts = (value.get(name) for name in ("registry", "repository", "tag", "digest"))
        return ":".join(str(part) for part in parts if part)
    if not isinstance(value, str) or not is_about_images or "{{" in value:
        return ""
    return value.strip()


def _check_tier_images(
    item: ManifestWithLocations, path: tuple[PathStep, ...], images: Mapping[str, str]
) -> Iterator[Violation]:
    most_common_image = Counter(images.values()).most_common(1)[0][0]
    reference_tier = next(tier for tier, image in images.items() if image == most_common_image)
    for tier, image in images.items():
        if image != most_common_image:
            field = ".".join(map(str, (*path, tier)))
            message = (
                f"{field} differs from the image of {reference_tier}: packages of one tier may be missing in another"
            )
            fix = f"use one tested image for all tiers: {most_common_image}"
            yield Violation(item.find_location(*path, tier), message, fix, item.key.name, field)


RULES: Final = (
    AnalysisRule(
        "AGY309",
        Severity.INFO,
        "A values file has different images for tiers",
        "Packages that one tier was tested with may be missing in another, and each image must be maintained.",
        "The file is a values file by its name, or a chart was rendered with it; it names images by tier, and they"
        " differ.",
        "Use one tested image for all tiers; let tiers differ in their resources.",
        _find_tiered_images,
    ),
)
