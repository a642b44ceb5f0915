"""How the version of a cluster is shown."""

from __future__ import annotations

import pytest

from argosy.features.clusters.connection_state import remove_vendor_suffix


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("v1.32.13", "v1.32.13"),
        ("v1.32.13-gke.100", "v1.32.13"),
        ("v1.32.13+argosy.0.1.0", "v1.32.13"),
        ("1.30", "v1.30"),
        ("", ""),
        ("unknown", "unknown"),
    ],
)
def test_version_is_shown_without_the_suffix_of_a_vendor(version: str, shown: str) -> None:
    assert remove_vendor_suffix(version) == shown
