"""Concurrency limit per cluster: slots, waiting keys in order, slow clusters, and fair shares of projects."""

from __future__ import annotations

from argosy.kube.controller.cluster_concurrency import ClusterConcurrencyLimiter
from argosy.kube.resource_key import ResourceKey

WORKERS = 8


def key(name: str) -> ResourceKey:
    return ResourceKey("argoproj.io", "Application", "argocd", name)


class Rooms:
    def __init__(self, *cluster_names: str, workers: int = WORKERS) -> None:
        self.called: list[str] = []
        self.slow: set[str] = set()
        self.admission = ClusterConcurrencyLimiter(workers, lambda woken: self.called.append(woken.name))
        for cluster_name in cluster_names:
            self.admission.add_cluster(cluster_name, lambda cluster=cluster_name: cluster in self.slow)  # type: ignore[misc]

    def enter(self, place: str, *names: str, project: str = "") -> list[str]:
        """Return the names that get a slot."""
        return [name for name in names if self.admission.try_acquire(place, key(name), project)]

    def leave(self, place: str, *names: str) -> None:
        for name in names:
            self.admission.release(place, key(name))

    def told(self) -> list[str]:
        called, self.called = self.called, []
        return called


def numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


def test_one_cluster_gets_at_most_half_of_the_workers_in_order() -> None:
    rooms = Rooms("far")
    assert rooms.enter("far", *numbered("a", 7)) == numbered("a", 4)
    rooms.leave("far", "a1", "a0")
    assert rooms.told() == ["a4", "a5"]
    assert rooms.enter("far", "late", "a5", "a4") == ["a5", "a4"]  # their slots were reserved
    rooms.leave("far", "a2", "a3")
    assert rooms.told() == ["a6", "late"]


def test_notified_key_that_gives_up_its_turn_frees_its_slot() -> None:
    rooms = Rooms("far", workers=2)
    assert rooms.enter("far", "a", "b", "c", "d") == ["a"]
    rooms.leave("far", "a")
    assert rooms.told() == ["b"]
    rooms.admission.drop_reservation(key("a"))  # this key has no reserved slot
    assert rooms.told() == []
    rooms.admission.drop_reservation(key("b"))  # deleted, paused, or owned by another member
    assert rooms.told() == ["c"]
    rooms.admission.drop_reservation(key("c"))
    assert rooms.told() == ["d"] and rooms.enter("far", "d") == ["d"]


def test_all_slots_are_filled_again_when_a_cluster_is_no_longer_slow() -> None:
    rooms = Rooms("far")
    rooms.slow.add("far")
    assert rooms.enter("far", *numbered("a", 6)) == ["a0"]
    rooms.slow.clear()
    rooms.leave("far", "a0")
    assert rooms.told() == ["a1", "a2", "a3", "a4"]


def test_blocked_clusters_leave_workers_to_other_clusters() -> None:
    rooms = Rooms("one", "two", "third", "fourth")
    held = rooms.enter("one", *numbered("a", 9)) + rooms.enter("two", *numbered("b", 9))
    assert len(held) == WORKERS - 2
    assert rooms.enter("third", "c0", "c1") == ["c0"]  # regardless of the slots in use elsewhere
    rooms.leave("two", "b0")
    rooms.leave("third", "c0")
    assert set(rooms.told()) == {"b2", "c1"}


def test_keys_waiting_for_a_removed_cluster_are_notified() -> None:
    rooms = Rooms("far", "other")
    rooms.enter("far", *numbered("a", 6))
    rooms.enter("other", *numbered("b", 6))
    rooms.admission.remove_cluster("far")
    assert rooms.told() == ["a4", "a5", "b2", "b3"]
    rooms.leave("far", "a0")
    assert rooms.told() == []


def test_each_cluster_gets_a_slot_with_one_worker() -> None:
    rooms = Rooms("one", "two", workers=1)
    assert rooms.enter("one", "a") == ["a"] and rooms.enter("two", "b") == ["b"]


def test_project_gets_a_slot_while_another_holds_all_slots_of_the_cluster() -> None:
    rooms = Rooms("prod")
    hostile = numbered("hostile", 50)
    assert rooms.enter("prod", *hostile, project="hostile") == hostile[:4]
    assert rooms.enter("prod", "team0", "team1", project="team") == ["team0"]
    assert rooms.enter("prod", "other", project="other") == ["other"]
    rooms.leave("prod", "team0")
    assert rooms.told() == ["team1"] and rooms.enter("prod", "team1", project="team") == ["team1"]
    assert not any(rooms.enter("prod", *hostile[4:], project="hostile"))


def test_projects_waiting_for_one_cluster_take_turns() -> None:
    rooms = Rooms("prod", workers=2)  # one slot, and one in reserve
    assert rooms.enter("prod", "first", project="first") and rooms.enter("prod", "second", project="second")
    rooms.enter("prod", *numbered("hostile", 50), project="hostile")
    rooms.enter("prod", *numbered("team", 3), project="team")
    inside, turns = ["first", "second"], list[str]()
    for _ in range(8):
        rooms.leave("prod", inside.pop(0))
        for name in rooms.told():
            assert rooms.enter("prod", name, project=name.rstrip("0123456789")) == [name]
            inside.append(name)
            turns.append(name)
    assert turns[:2] == ["hostile0", "team0"]
    assert max(turns.index(name) for name in numbered("team", 3)) <= 5, f"{turns}"


def test_project_on_two_clusters_does_not_block_others_on_any_cluster() -> None:
    rooms = Rooms("one", "two", "third")
    held = rooms.enter("one", *numbered("a", 9), project="hostile") + rooms.enter(
        "two", *numbered("b", 9), project="hostile"
    )
    assert len(held) == WORKERS - 2
    assert rooms.enter("third", "c", project="hostile") == ["c"]
    for cluster_name in ("third", "one", "two"):
        assert rooms.enter(cluster_name, f"team-{cluster_name}", project="team") == [f"team-{cluster_name}"]
    assert rooms.enter("third", "other", project="other") == ["other"]


def test_project_with_many_reserved_slots_does_not_block_another() -> None:
    cluster_names = numbered("place", 20)
    rooms = Rooms(*cluster_names)
    for turn in ("first", "second"):
        for cluster_name in cluster_names:
            rooms.enter(cluster_name, f"{cluster_name}-{turn}", project="hostile")
    for cluster_name in cluster_names:
        rooms.leave(cluster_name, f"{cluster_name}-first")
    assert set(rooms.told()) == {f"{cluster_name}-second" for cluster_name in cluster_names}
    assert rooms.enter("place7", "team", project="team") == ["team"]


def test_slow_cluster_has_one_extra_slot_for_another_project() -> None:
    rooms = Rooms("far")
    rooms.slow.add("far")
    assert rooms.enter("far", *numbered("a", 6), project="hostile") == ["a0"]
    assert rooms.enter("far", "team", project="team") == ["team"]
    assert rooms.enter("far", "other", project="other") == []
    rooms.leave("far", "a0")
    assert rooms.told() == ["other"]


def test_waiting_key_that_changes_its_project_waits_once() -> None:
    rooms = Rooms("far", workers=2)
    assert rooms.enter("far", "a", "b", project="old") == ["a"]
    assert rooms.enter("far", "b", project="new") == ["b"]
    rooms.leave("far", "a", "b")
    assert rooms.told() == []
