"""Memory budget of the lists and watches of one cluster."""

from __future__ import annotations

import pytest

from argosy.errors import Gone
from argosy.kube.client.list_watch_memory_limit import ReadBudget
from argosy.kube.client.status_errors import ApiServerUnavailable

MIB, PODS, ROLES = 2**20, "/api/v1/pods?", "/apis/rbac.authorization.k8s.io/v1/roles?"


def list_objects(budget: ReadBudget, collection: str, sizes: dict[str, int]) -> None:
    with budget.track_list(collection) as size:
        size.add(sum(sizes.values()))
        size.add_objects({("ml", name): amount for name, amount in sizes.items()})


def test_updates_of_the_same_objects_do_not_add_up() -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {f"pod-{number}": MIB for number in range(20)})
    for number in range(1000):
        budget.add_event(PODS, ("ml", f"pod-{number % 20}"), MIB)
    list_objects(budget, ROLES, {f"role-{number}": MIB for number in range(60)})
    assert budget.total == 80 * MIB


def test_smaller_or_deleted_object_releases_memory() -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {"large": 50 * MIB, "small": MIB})
    budget.add_event(PODS, ("ml", "large"), 10 * MIB)
    assert budget.total == 11 * MIB
    budget.remove_object(PODS, ("ml", "large"))
    budget.remove_object(PODS, ("ml", "large"))
    budget.remove_object(ROLES, ("ml", "never seen"))
    assert budget.total == MIB


@pytest.mark.parametrize("is_new", [True, False])
def test_watch_ends_when_new_or_growing_objects_reach_the_limit(is_new: bool) -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {f"pod-{number}": MIB for number in range(10)})
    with pytest.raises(Gone):
        for number in range(200):
            budget.add_event(PODS, ("ml", f"new-{number}" if is_new else "pod-0"), (1 if is_new else number) * MIB)


def test_watch_events_reduce_the_budget_for_lists() -> None:
    budget = ReadBudget(100 * MIB)
    for number in range(80):
        budget.add_event(PODS, ("ml", f"new-{number}"), MIB)
    with pytest.raises(ApiServerUnavailable, match="exclude kinds"):
        list_objects(budget, ROLES, {"role": 20 * MIB})
    list_objects(budget, PODS, {"pod": MIB})
    list_objects(budget, ROLES, {"role": 20 * MIB})
    assert budget.total == 21 * MIB


def test_failed_list_does_not_change_the_budget() -> None:
    budget = ReadBudget(100 * MIB)
    list_objects(budget, PODS, {"pod": 10 * MIB})
    with pytest.raises(ApiServerUnavailable):
        list_objects(budget, PODS, {"other": 95 * MIB})
    budget.add_event(PODS, ("ml", "pod"), 11 * MIB)
    assert budget.total == 11 * MIB
