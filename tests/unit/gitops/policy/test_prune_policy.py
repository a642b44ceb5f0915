"""Prune policy: which live objects a sync may delete."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.policy.prune_policy import PruneCandidate, find_reason_to_keep, is_mass_prune
from support.examples import examples

OWN = PruneCandidate(owner="models", is_self_referenced=True, is_desired_state_complete=True, is_in_destination=True)


def test_own_object_removed_from_git_may_be_pruned() -> None:
    assert find_reason_to_keep(OWN, "models") == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"owner": ""}, "belongs to no application"),
        ({"owner": "model"}, "belongs to model"),
        ({"owner": "models-2"}, "belongs to models-2"),
        ({"is_self_referenced": False}, "copied"),
        ({"is_desired_state_complete": False}, "not completely known"),
        ({"is_kind_served": False}, "not served"),
        ({"is_in_destination": False}, "outside the destinations"),
        ({"is_excluded": True}, "exclude"),
        ({"refusal": "resource :Secret is not permitted"}, "not permitted"),
        ({"owner_reference": "ReplicaSet/web"}, "ReplicaSet/web owns it"),
        ({"options": frozenset({"Prune=false"})}, "no prune"),
    ],
)
def test_one_failed_condition_prevents_pruning(change: dict[str, object], word: str) -> None:
    assert word in find_reason_to_keep(dataclasses.replace(OWN, **change), "models")  # type: ignore[arg-type]


CANDIDATES = st.builds(
    PruneCandidate,
    owner=st.sampled_from(["", "models", "model", "models ", "ns_models"]),
    is_self_referenced=st.booleans(),
    is_desired_state_complete=st.booleans(),
    is_in_destination=st.booleans(),
    is_kind_served=st.booleans(),
    refusal=st.sampled_from(["", "no"]),
    is_excluded=st.booleans(),
    owner_reference=st.sampled_from(["", "Job/x"]),
    options=st.frozensets(st.sampled_from(["Prune=false", "Prune=confirm", "PruneLast=true"])),
)


@settings(max_examples=examples())
@given(CANDIDATES, st.sampled_from(["", "models", "model"]))
def test_prunable_candidate_satisfies_every_condition(candidate: PruneCandidate, instance: str) -> None:
    if find_reason_to_keep(candidate, instance) == "":
        assert instance and candidate.owner == instance
        assert candidate.is_self_referenced and candidate.is_desired_state_complete and candidate.is_in_destination
        assert candidate.is_kind_served and not (
            candidate.is_excluded or candidate.refusal or candidate.owner_reference
        )
        assert "Prune=false" not in candidate.options


@pytest.mark.parametrize(
    ("deletions", "managed", "expected"),
    [(10, 11, False), (11, 21, True), (11, 22, False), (500, 600, True), (0, 0, False)],
)
def test_mass_prune_is_more_than_half_and_more_than_ten_objects(deletions: int, managed: int, expected: bool) -> None:
    assert is_mass_prune(deletions, managed) is expected
