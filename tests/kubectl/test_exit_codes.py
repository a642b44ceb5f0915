"""The newest kubectl against the embedded server: it ends as kubectl 1.32 does. Its words change with its version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.kubectl_transcripts import Outcome, Scenario, complaints, newest_kubectl, scenarios

Played = dict[str, list[Outcome]]
ONE_OF = 15  # that is played in `make test`; the others in `make prove`: kubectl 1.32 plays all of them always
SOME = scenarios()[::ONE_OF]
REST = [scenario for scenario in scenarios() if scenario not in SOME]
CASES = [*SOME, *(pytest.param(scenario, marks=pytest.mark.tier("all")) for scenario in REST)]


@pytest.fixture(scope="module")
def played(play_with: Callable[..., Played]) -> Played:
    return play_with(newest_kubectl(), "the newest kubectl", [*SOME, *REST])


@pytest.mark.parametrize("scenario", CASES, ids=lambda scenario: scenario.name)
def test_the_newest_kubectl_ends_with_the_same_exit_codes(scenario: Scenario, played: Played) -> None:
    found = complaints(scenario, played[scenario.name], words=False)
    assert not found, found
