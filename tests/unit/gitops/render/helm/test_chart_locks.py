"""Chart.lock pins the dependencies only if its digest is that of the dependencies, as Helm computes it."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import RenderError
from argosy.gitops.render.helm.chart_lock import compute_lock_digest, list_locked_versions

REPOSITORY = "https://charts.example.com"
DECLARED: list[dict[str, Any]] = [
    {"name": "redis", "version": ">=20.0 <21", "repository": REPOSITORY, "condition": "redis.enabled"},
    {"name": "shop", "version": "1.x", "repository": "@team", "alias": "store"},
]
LOCKED = [
    {"name": "redis", "version": "20.1.3", "repository": REPOSITORY},
    {"name": "shop", "version": "1.4.0", "repository": "@team"},
]


def lock(declared: list[dict[str, Any]] = DECLARED) -> dict[str, Any]:
    return {"dependencies": LOCKED, "digest": compute_lock_digest(declared, LOCKED), "generated": "2026-01-01"}


def test_locked_versions_are_those_of_the_declared_dependencies_in_order() -> None:
    assert list_locked_versions(lock(), DECLARED, "Chart.lock", "Chart.yaml") == ["20.1.3", "1.4.0"]


@pytest.mark.parametrize("change", [{"version": "21.x"}, {"repository": "https://other.example.com"}, {"tags": ["a"]}])
def test_changed_dependency_does_not_match_the_lock(change: dict[str, Any]) -> None:
    changed = [{**DECLARED[0], **change}, DECLARED[1]]
    with pytest.raises(RenderError, match=r"the lock file \(Chart\.lock\) is out of sync"):
        list_locked_versions(lock(), changed, "a/Chart.lock", "a/Chart.yaml")
    with pytest.raises(RenderError, match="out of sync"):
        list_locked_versions({"dependencies": LOCKED}, DECLARED, "Chart.lock", "Chart.yaml")
