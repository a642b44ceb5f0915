"""Treats an object as Progressing while its status describes an older generation. Pure.

In: a health function, patterns of kinds. Out: the same function, corrected for stale statuses. Never: corrects an
object without health, or one whose health script failed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version
from argosy.languages.globs import compile_glob, matches_glob

AssessAll = Callable[[Sequence[Manifest]], Awaitable[list[Assessment | None]]]

# argo: Argo CD has no such check and trusts the health script. Common scripts for notebooks read only the phase, and
# right after an apply that phase belongs to the previous spec: the next wave would start with an old model. Some
# operators never advance observedGeneration, so other kinds are included only by a setting.
DEFAULT_OBSERVED_KINDS: Final = ("mlops.mlops.dev/NotebookValidationJob",)
_SEPARATOR: Final = re.compile(r"\s+|,(?![^{}]*\})")  # not the commas of {a,b}


def read_observed_kinds(text: str, where: str) -> tuple[str, ...]:
    """Parse patterns such as `serving.kserve.io/*, apps/Deployment`. Raises UserError for an invalid pattern."""
    patterns = tuple(filter(None, _SEPARATOR.split(text)))
    for pattern in patterns:
        compile_glob(pattern, where)
    return patterns


def correct_stale_health(assess_all: AssessAll, kinds: Iterable[str]) -> AssessAll:
    """Wrap `assess_all`: objects of these kinds with a stale status are Progressing."""
    patterns = tuple(kinds)
    if not patterns:
        return assess_all

    async def assess(manifests: Sequence[Manifest]) -> list[Assessment | None]:
        assessments = await assess_all(manifests)
        return [
            _correct_if_stale(manifest, assessment, patterns)
            for manifest, assessment in zip(manifests, assessments, strict=True)
        ]

    return assess


def _correct_if_stale(manifest: Manifest, assessment: Assessment | None, patterns: Sequence[str]) -> Assessment | None:
    if assessment is None or assessment.fault or assessment.health in (None, HealthStatus.PROGRESSING):
        return assessment
    generations = find_stale_generations(manifest)
    if generations is None or not any(matches_glob(pattern, _kind_text(manifest)) for pattern in patterns):
        return assessment
    observed, generation = generations
    message = f"waiting for generation {generation}: the status is of generation {observed}"
    return Assessment(HealthStatus.PROGRESSING, message, assessment.rule)


def find_stale_generations(manifest: Manifest) -> tuple[int, int] | None:
    """Return the observed and the current generation, if the status is older than the spec."""
    observed = _number_in(manifest.get("status"), "observedGeneration")
    generation = _number_in(manifest.get("metadata"), "generation")
    return (observed, generation) if observed is not None and generation is not None and observed < generation else None


def _number_in(mapping: object, name: str) -> int | None:
    value = mapping.get(name) if isinstance(mapping, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kind_text(manifest: Manifest) -> str:
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    kind = str(manifest.get("kind") or "")
    return f"{group}/{kind}" if group else kind
