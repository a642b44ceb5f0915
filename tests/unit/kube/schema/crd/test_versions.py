"""Versions of custom kinds: order of preference, and the warning for a deprecated version."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.schema.crd.version_priority import format_deprecation_warning, version_sort_key


def test_versions_sort_stable_then_beta_then_alpha_newest_first() -> None:
    versions = ["v1alpha1", "foo", "v2beta1", "v1", "v10", "v1beta2", "v2"]
    assert sorted(versions, key=version_sort_key) == ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]


def spec(*versions: dict[str, Any]) -> dict[str, Any]:
    return {"group": "example.com", "names": {"kind": "Boat"}, "versions": list(versions)}


OLD = {"name": "v1beta1", "served": True, "deprecated": True}


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        ((OLD,), "example.com/v1beta1 Boat is deprecated"),
        ((OLD, {"name": "v1", "served": True}), "example.com/v1beta1 Boat is deprecated; use example.com/v1 Boat"),
        ((OLD, {"name": "v1", "served": False}), "example.com/v1beta1 Boat is deprecated"),
        ((OLD, {"name": "v1alpha1", "served": True}), "example.com/v1beta1 Boat is deprecated"),
        (({**OLD, "deprecationWarning": "go away"}, {"name": "v1", "served": True}), "go away"),
        (({"name": "v1", "served": True},), ""),
    ],
)
def test_deprecation_warning_names_a_newer_served_version(versions: tuple[dict[str, Any], ...], text: str) -> None:
    assert format_deprecation_warning(spec(*versions), versions[0]) == text
