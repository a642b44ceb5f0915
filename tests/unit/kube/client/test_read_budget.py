"""The memory that one cluster's lists and watches are counted with."""

from __future__ import annotations

import pytest

from argosy.errors import Gone
from argosy.kube.client.read_memory_budget import ReadBudget
from argosy.kube.client.status_errors import ApiServerUnavailable

MIB, PODS, ROLES = 2**20, "/api/v1/pods?", "/apis/rbac.authorization.k8s.io/v1/roles?"


def list_objects(budget: ReadBudget, collection: str, sizes: dict[str, int]) -> None:
    with budget.track_list(collection) as size:
        size.add(sum(sizes.values()))
        size.add_objects({("ml", name): amount for name, amount in sizes.items()})


def test_updates_of_the_same_objects_take_no_more_memory_each_time() -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {f"pod-{number}": MIB for number in range(20)})
    for number in range(1000):
        budget.add_event(PODS, ("ml", f"pod-{number % 20}"), MIB)
    list_objects(budget, ROLES, {f"role-{number}": MIB for number in range(60)})
    assert budget.total == 80 * MIB


def test_an_object_that_shrinks_or_is_deleted_gives_its_memory_back() -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {"large": 50 * MIB, "small": MIB})
    budget.add_event(PODS, ("ml", "large"), 10 * MIB)
    assert budget.total == 11 * MIB
    budget.remove_object(PODS, ("ml", "large"))
    budget.remove_object(PODS, ("ml", "large"))
    budget.remove_object(ROLES, ("ml", "never seen"))
    assert budget.total == MIB


@pytest.mark.parametrize("is_new", [True, False])
def test_objects_that_are_new_or_grow_end_the_watch_at_the_limit(is_new: bool) -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {f"pod-{number}": MIB for number in range(10)})
    with pytest.raises(Gone):
        for number in range(200):
            budget.add_event(PODS, ("ml", f"new-{number}" if is_new else "pod-0"), (1 if is_new else number) * MIB)


def test_what_watches_brought_leaves_less_for_lists() -> None:
    budget = ReadBudget(100 * MIB)
    for number in range(80):
        budget.add_event(PODS, ("ml", f"new-{number}"), MIB)
    with pytest.raises(ApiServerUnavailable, match="exclude kinds"):
        list_objects(budget, ROLES, {"role": 20 * MIB})
    list_objects(budget, PODS, {"pod": MIB})
    list_objects(budget, ROLES, {"role": 20 * MIB})
    assert budget.total == 21 * MIB


def test_a_list_that_fails_changes_nothing() -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {"pod": 10 * MIB})
    with pytest.raises(ApiServerUnavailable):
        list_objects(budget, PODS, {"other": 95 * MIB})
    budget.add_event(PODS, ("ml", "pod"), 11 * MIB)
    assert budget.total == 11 * MIB
