"""kubectl 1.32 against a real server: the table is true. Takes minutes, so it runs only when asked for.

Run: ARGOSY_TEST_REAL=1 .venv/bin/python -m pytest tests/kubectl/test_real.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cluster
import pytest
from record import control_plane
from transcript import Outcome, Scenario, Shell, complaints, oracle_kubectl, play, scenarios

pytestmark = pytest.mark.skipif(
    not cluster.IS_ASKED_FOR, reason=f"kubectl and a real server: set {cluster.ASKED}=1"
)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Outcome]]]:
    kubectl: Path | None = oracle_kubectl()
    if kubectl is None:
        pytest.skip("kubectl 1.32: it is not here (make install)")
    if cluster.programs() is None:
        pytest.skip(f"a real server: it is not in {cluster.CACHE} (make realcluster)")
    with control_plane() as kubeconfig:
        yield play(scenarios(), Shell(kubectl, kubeconfig, tmp_path_factory.mktemp("real") / "shell"))


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_a_real_server_makes_kubectl_say_what_the_table_holds(
    scenario: Scenario, played: dict[str, list[Outcome]]
) -> None:
    found = complaints(scenario, played[scenario.name])
    assert not found, found
