"""kubectl 1.32 against a real server gives the recorded transcripts. `make realcluster` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import control_plane
from support.kubectl_transcripts import Outcome, Scenario, Shell, complaints, oracle_kubectl, play, scenarios

pytestmark = pytest.mark.tier("realcluster")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Outcome]]]:
    kubectl: Path | None = oracle_kubectl()
    if kubectl is None:
        pytest.skip("kubectl 1.32: it is not here (make install)")
    if control_plane.programs() is None:
        pytest.skip(f"a real server: it is not in {control_plane.CACHE} (make realcluster)")
    with control_plane.real_cluster_with(control_plane.CONTROLLERS_OF_THE_SANDBOX) as started:
        yield play(scenarios(), Shell(kubectl, started.kubeconfig, tmp_path_factory.mktemp("real") / "shell"))


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_kubectl_output_of_a_real_server_equals_the_recording(
    scenario: Scenario, played: dict[str, list[Outcome]]
) -> None:
    differences = complaints(scenario, played[scenario.name])
    assert not differences, differences
