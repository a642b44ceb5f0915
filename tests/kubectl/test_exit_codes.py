"""The newest kubectl against the embedded server: it ends as kubectl 1.32 does. Its words change with its version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.kubectl_transcripts import Outcome, Scenario, cases, complaints, newest_kubectl

Played = dict[str, list[Outcome]]
# Kinds of one's own; other tests use this kubectl with built-in kinds and kustomize.
SCENARIOS_IN_MAKE_TEST = {"definitions"}


@pytest.fixture(scope="module")
def played(play_with: Callable[..., Played]) -> Played:
    return play_with(newest_kubectl(), "the newest kubectl")


@pytest.mark.parametrize("scenario", cases(SCENARIOS_IN_MAKE_TEST), ids=lambda scenario: scenario.name)
def test_the_newest_kubectl_ends_with_the_same_exit_codes(scenario: Scenario, played: Played) -> None:
    differences = complaints(scenario, played[scenario.name], words=False)
    assert not differences, differences
