"""Versions of custom kinds: their order of preference, and the warning that goes with a deprecated one."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.schema.crd.versions import format_deprecation_warning, version_sort_key


def test_stable_versions_come_first_then_beta_then_alpha_and_the_newest_of_each() -> None:
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
def test_a_deprecated_version_names_a_newer_one_that_is_served(versions: tuple[dict[str, Any], ...], text: str) -> None:
    assert format_deprecation_warning(spec(*versions), versions[0]) == text
