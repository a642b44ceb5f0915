"""Whether the status of an Application was computed for its current sources."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.coexistence.application_refresh import is_status_current

MINE = {"repoURL": "https://git.example/a.git", "path": "dev", "targetRevision": "main"}
OTHER = {**MINE, "repoURL": "https://git.example/b.git"}


@pytest.mark.parametrize(
    ("spec", "status", "is_about"),
    [
        ({"source": MINE}, {}, True),
        ({"source": MINE}, {"sync": {"status": "Unknown"}}, True),
        ({"source": MINE}, {"sync": {"comparedTo": {"source": {**MINE, "directory": {}}}}}, True),
        ({"source": OTHER}, {"sync": {"comparedTo": {"source": MINE}}}, False),
        ({"sources": [MINE, OTHER]}, {"sync": {"comparedTo": {"sources": [MINE, OTHER]}}}, True),
        ({"sources": [MINE, OTHER]}, {"sync": {"comparedTo": {"sources": [MINE]}}}, False),
    ],
)
def test_status_compared_with_other_sources_is_not_current(
    spec: dict[str, Any], status: dict[str, Any], is_about: bool
) -> None:
    assert is_status_current({"spec": spec, "status": status}) is is_about
