"""The real operator of OpenShift GitOps (argocd-operator) and the simulated one: the same ArgoCD resources and edits.

Skipped where the operator is not built (make argocd-operator). tests/parity/test_gitops_operator.py makes the same
comparison with the recording.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support.argocd_operator.kept_differences import compare_facts, find_unexplained
from support.argocd_operator.program import find_operator
from support.argocd_operator.record import load_recorded_shapes, record, run_real_site
from support.argocd_operator.site import RECORDED, Site
from support.clusters import sandbox

pytestmark = pytest.mark.tier("argocd")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    operator = find_operator()
    if operator is None:
        pytest.skip("argocd-operator is not built (make argocd-operator)")
    with run_real_site(operator, tmp_path_factory.mktemp("operator") / "site") as site:
        yield record(site)


def test_recording_is_what_the_real_operator_does(real: dict[str, Any]) -> None:
    recorded = json.loads(RECORDED.read_text())
    now, before = load_recorded_shapes(real), load_recorded_shapes(recorded)
    assert now.keys() == before.keys() and real["edits"].keys() == recorded["edits"].keys()
    differences = [f"{shape}: {item}" for shape in now for item in compare_facts(now[shape], before[shape])]
    for edit, effects in real["edits"].items():
        differences += [f"{edit}: {item}" for item in compare_facts(effects, recorded["edits"][edit])]
    assert not differences, "\n".join(differences)


def test_simulated_operator_differs_from_the_real_one_only_for_listed_reasons(
    real: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with sandbox(tmp_path_factory.mktemp("simulated") / "data", "--port", "0", "--addons", "argocd_operator") as server:
        simulated = record(Site("simulated", server))
    used: Counter[str] = Counter()
    shapes, simulated_shapes = load_recorded_shapes(real), load_recorded_shapes(simulated)
    differences = []
    for shape, facts in shapes.items():
        unexplained = find_unexplained(shape, compare_facts(facts, simulated_shapes[shape]), used)
        differences += [f"{shape}: {item}" for item in unexplained]
    for edit, effects in real["edits"].items():
        unexplained = find_unexplained(edit, compare_facts(effects, simulated["edits"][edit]), used)
        differences += [f"{edit}: {item}" for item in unexplained]
    assert not differences, "\n".join(differences)
