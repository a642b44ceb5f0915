"""Who has which key: evenly, and with as few changes of hands as can be."""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.kube.controller.sharding.rendezvous_hash import find_owner

KEYS = [f"argocd/app-{number}" for number in range(10_000)]


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_ten_thousand_keys_are_spread_within_a_tenth(count: int) -> None:
    members = [f"controller-{number}-7f3a" for number in range(count)]
    spread = Counter(find_owner(members, key) for key in KEYS)
    fair = len(KEYS) / count
    assert set(spread) == set(members)
    assert all(abs(key_count - fair) <= 0.1 * fair for key_count in spread.values()), spread


def test_only_the_keys_of_who_comes_or_goes_change_hands() -> None:
    few, more = ["a", "b", "c"], ["a", "b", "c", "d"]
    moved = [key for key in KEYS if find_owner(few, key) != find_owner(more, key)]
    assert all(find_owner(more, key) == "d" for key in moved)
    assert abs(len(moved) - len(KEYS) / 4) <= 0.1 * len(KEYS) / 4


def test_the_order_of_members_does_not_matter_and_nobody_has_nothing() -> None:
    assert all(find_owner(["a", "b", "c"], key) == find_owner({"c", "a", "b"}, key) for key in KEYS[:1000])
    assert find_owner([], "argocd/app") == ""
