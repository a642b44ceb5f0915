"""The newest kubectl against the sandbox has the exit codes of kubectl 1.32; its output text is not compared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.kubectl_transcripts import Outcome, Scenario, cases, complaints, newest_kubectl

Played = dict[str, list[Outcome]]
# Custom resources; other tests use this kubectl with built-in kinds and kustomize.
SCENARIOS_IN_MAKE_TEST = {"definitions"}


@pytest.fixture(scope="module")
def played(play_with: Callable[..., Played]) -> Played:
    return play_with(newest_kubectl(), "the newest kubectl")


@pytest.mark.parametrize("scenario", cases(SCENARIOS_IN_MAKE_TEST), ids=lambda scenario: scenario.name)
def test_newest_kubectl_returns_the_recorded_exit_codes(scenario: Scenario, played: Played) -> None:
    differences = complaints(scenario, played[scenario.name], words=False)
    assert not differences, differences
