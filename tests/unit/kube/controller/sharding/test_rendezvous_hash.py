"""Rendezvous hashing: keys are spread evenly, and few keys move when members join or leave."""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.kube.controller.sharding.rendezvous_hash import find_owner

KEYS = [f"argocd/app-{number}" for number in range(10_000)]


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_ten_thousand_keys_are_spread_evenly_within_ten_percent(count: int) -> None:
    members = [f"controller-{number}-7f3a" for number in range(count)]
    spread = Counter(find_owner(members, key) for key in KEYS)
    fair = len(KEYS) / count
    assert set(spread) == set(members)
    assert all(abs(key_count - fair) <= 0.1 * fair for key_count in spread.values()), spread


def test_only_keys_of_the_joining_or_leaving_member_move() -> None:
    few, more = ["a", "b", "c"], ["a", "b", "c", "d"]
    moved = [key for key in KEYS if find_owner(few, key) != find_owner(more, key)]
    assert all(find_owner(more, key) == "d" for key in moved)
    assert abs(len(moved) - len(KEYS) / 4) <= 0.1 * len(KEYS) / 4


def test_owner_ignores_member_order_and_is_empty_without_members() -> None:
    assert all(find_owner(["a", "b", "c"], key) == find_owner({"c", "a", "b"}, key) for key in KEYS[:1000])
    assert find_owner([], "argocd/app") == ""
