"""Places that keep some workers, never all, and those who wait for their turn in one."""

from __future__ import annotations

from argosy.model.names import ResourceKey
from argosy.runtime.admission import Admission

WORKERS = 8


def key(name: str) -> ResourceKey:
    return ResourceKey("argoproj.io", "Application", "argocd", name)


class Rooms:
    def __init__(self, *places: str, workers: int = WORKERS) -> None:
        self.called: list[str] = []
        self.slow: set[str] = set()
        self.admission = Admission(workers, lambda woken: self.called.append(woken.name))
        for place in places:
            self.admission.open(place, lambda place=place: place in self.slow)  # type: ignore[misc]

    def enter(self, place: str, *names: str) -> list[str]:
        """Those who may."""
        return [name for name in names if self.admission.enter(place, key(name))]

    def leave(self, place: str, *names: str) -> None:
        for name in names:
            self.admission.leave(place, key(name))

    def told(self) -> list[str]:
        found, self.called = self.called, []
        return found


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
    rooms.admission.ended(key("a"))  # nobody waits for this one
    assert rooms.told() == []
    rooms.admission.ended(key("b"))  # deleted, paused, or another member's
    assert rooms.told() == ["c"]
    rooms.admission.ended(key("c"))
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
    rooms.admission.close("far")
    assert rooms.told() == ["a4", "a5", "b2", "b3"]
    rooms.leave("far", "a0")
    assert rooms.told() == []


def test_one_worker_is_enough_for_any_number_of_places() -> None:
    rooms = Rooms("one", "two", workers=1)
    assert rooms.enter("one", "a") == ["a"] and rooms.enter("two", "b") == ["b"]
