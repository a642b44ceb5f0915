"""kubectl 1.32 against the sandbox: every recorded row has the exit code and the output of a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.kubectl_transcripts import Outcome, Scenario, cases, complaints, oracle_kubectl

Played = dict[str, list[Outcome]]
# get, apply, create, delete and wait; each row is a process
SCENARIOS_IN_MAKE_TEST = {"prune", "namespaces"}


@pytest.fixture(scope="module")
def played(play_with: Callable[[Path | None, str], Played]) -> Played:
    return play_with(oracle_kubectl(), "kubectl 1.32")


@pytest.mark.parametrize("scenario", cases(SCENARIOS_IN_MAKE_TEST), ids=lambda scenario: scenario.name)
def test_sandbox_output_equals_the_recording_of_a_real_server(scenario: Scenario, played: Played) -> None:
    differences = complaints(scenario, played[scenario.name])
    assert not differences, differences
