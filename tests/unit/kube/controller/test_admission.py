"""Places that keep some workers, never all, and those who wait for their turn in one."""

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
        """Those who may."""
        return [name for name in names if self.admission.try_acquire(place, key(name), project)]

    def leave(self, place: str, *names: str) -> None:
        for name in names:
            self.admission.release(place, key(name))

    def told(self) -> list[str]:
        called, self.called = self.called, []
        return called


def numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


def test_one_place_has_at_most_half_of_the_workers_and_the_next_are_called_in_their_order() -> None:
    rooms = Rooms("far")
    assert rooms.enter("far", *numbered("a", 7)) == numbered("a", 4)
    rooms.leave("far", "a1", "a0")
    assert rooms.told() == ["a4", "a5"]
    assert rooms.enter("far", "late", "a5", "a4") == ["a5", "a4"]  # their places were kept
    rooms.leave("far", "a2", "a3")
    assert rooms.told() == ["a6", "late"]


def test_whoever_is_called_and_does_not_come_keeps_nobody_waiting() -> None:
    rooms = Rooms("far", workers=2)
    assert rooms.enter("far", "a", "b", "c", "d") == ["a"]
    rooms.leave("far", "a")
    assert rooms.told() == ["b"]
    rooms.admission.end_turn(key("a"))  # nobody waits for this one
    assert rooms.told() == []
    rooms.admission.end_turn(key("b"))  # deleted, paused, or another member's
    assert rooms.told() == ["c"]
    rooms.admission.end_turn(key("c"))
    assert rooms.told() == ["d"] and rooms.enter("far", "d") == ["d"]


def test_after_a_slow_spell_all_places_are_filled_again() -> None:
    rooms = Rooms("far")
    rooms.slow.add("far")
    assert rooms.enter("far", *numbered("a", 6)) == ["a0"]
    rooms.slow.clear()
    rooms.leave("far", "a0")
    assert rooms.told() == ["a1", "a2", "a3", "a4"]


def test_places_that_are_lost_together_leave_workers_to_the_others() -> None:
    rooms = Rooms("one", "two", "third", "fourth")
    held = rooms.enter("one", *numbered("a", 9)) + rooms.enter("two", *numbered("b", 9))
    assert len(held) == WORKERS - 2
    assert rooms.enter("third", "c0", "c1") == ["c0"]  # whatever the others have
    rooms.leave("two", "b0")
    rooms.leave("third", "c0")
    assert set(rooms.told()) == {"b2", "c1"}


def test_whoever_waits_for_a_place_that_is_closed_is_told() -> None:
    rooms = Rooms("far", "other")
    rooms.enter("far", *numbered("a", 6))
    rooms.enter("other", *numbered("b", 6))
    rooms.admission.remove_cluster("far")
    assert rooms.told() == ["a4", "a5", "b2", "b3"]
    rooms.leave("far", "a0")
    assert rooms.told() == []


def test_one_worker_is_enough_for_any_number_of_places() -> None:
    rooms = Rooms("one", "two", workers=1)
    assert rooms.enter("one", "a") == ["a"] and rooms.enter("two", "b") == ["b"]


def test_a_project_gets_in_while_another_holds_all_slots_of_the_place_and_has_many_more_waiting() -> None:
    rooms = Rooms("prod")
    hostile = numbered("hostile", 50)
    assert rooms.enter("prod", *hostile, project="hostile") == hostile[:4]
    assert rooms.enter("prod", "team0", "team1", project="team") == ["team0"]
    assert rooms.enter("prod", "other", project="other") == ["other"]
    rooms.leave("prod", "team0")
    assert rooms.told() == ["team1"] and rooms.enter("prod", "team1", project="team") == ["team1"]
    assert not any(rooms.enter("prod", *hostile[4:], project="hostile"))


def test_projects_that_wait_for_the_same_place_take_turns_however_many_keys_one_of_them_has() -> None:
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


def test_a_project_in_two_places_does_not_keep_others_from_these_or_from_a_third() -> None:
    rooms = Rooms("one", "two", "third")
    held = rooms.enter("one", *numbered("a", 9), project="hostile") + rooms.enter(
        "two", *numbered("b", 9), project="hostile"
    )
    assert len(held) == WORKERS - 2
    assert rooms.enter("third", "c", project="hostile") == ["c"]
    for cluster_name in ("third", "one", "two"):
        assert rooms.enter(cluster_name, f"team-{cluster_name}", project="team") == [f"team-{cluster_name}"]
    assert rooms.enter("third", "other", project="other") == ["other"]


def test_a_project_that_is_called_to_many_places_does_not_keep_another_from_one_of_them() -> None:
    cluster_names = numbered("place", 20)
    rooms = Rooms(*cluster_names)
    for turn in ("first", "second"):
        for cluster_name in cluster_names:
            rooms.enter(cluster_name, f"{cluster_name}-{turn}", project="hostile")
    for cluster_name in cluster_names:
        rooms.leave(cluster_name, f"{cluster_name}-first")
    assert set(rooms.told()) == {f"{cluster_name}-second" for cluster_name in cluster_names}
    assert rooms.enter("place7", "team", project="team") == ["team"]


def test_a_slow_place_has_a_slot_for_a_project_that_finds_another_there() -> None:
    rooms = Rooms("far")
    rooms.slow.add("far")
    assert rooms.enter("far", *numbered("a", 6), project="hostile") == ["a0"]
    assert rooms.enter("far", "team", project="team") == ["team"]
    assert rooms.enter("far", "other", project="other") == []
    rooms.leave("far", "a0")
    assert rooms.told() == ["other"]


def test_a_key_that_waits_and_changes_its_project_waits_once() -> None:
    rooms = Rooms("far", workers=2)
    assert rooms.enter("far", "a", "b", project="old") == ["a"]
    assert rooms.enter("far", "b", project="new") == ["b"]
    rooms.leave("far", "a", "b")
    assert rooms.told() == []
