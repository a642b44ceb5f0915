"""The newest kubectl against the embedded server: it ends as kubectl 1.32 does. Its words change with its version."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from transcript import Outcome, Scenario, complaints, newest_kubectl, scenarios
from wiped_server import IS_ASKED_FOR

Played = dict[str, list[Outcome]]
ONE_OF = 15  # that is played in `make test`; the others in `make prove`: kubectl 1.32 plays all of them always
SOME = scenarios()[::ONE_OF]
REST = [each for each in scenarios() if each not in SOME] if IS_ASKED_FOR else []
CASES = [*SOME, *(pytest.param(each, marks=pytest.mark.prove) for each in REST)]


@pytest.fixture(scope="module")
def played(play_with: Callable[..., Played]) -> Played:
    return play_with(newest_kubectl(), "the newest kubectl", [*SOME, *REST])


@pytest.mark.parametrize("scenario", CASES, ids=lambda scenario: scenario.name)
def test_the_newest_kubectl_ends_with_the_same_exit_codes(scenario: Scenario, played: Played) -> None:
    found = complaints(scenario, played[scenario.name], words=False)
    assert not found, found
