"""What commits tell of promotions, and that nobody's words become a line of it."""

from __future__ import annotations

from argosy.features.promote.promotion_log import Action, By, Entry, entries, last, message
from argosy.features.promote.releases import Release

R4, R3 = Release("r4", "a" * 40), Release("r3", "b" * 40)
FULL = Entry(
    Action.PROMOTE, "staging", By("ann", "cluster", ("a", "b c")), R4, "dev", R3, "because", ("test",), "",
    ("check: open: fine",),
)  # fmt: skip


def back(text: str) -> list[Entry]:
    return entries([("c" * 40, 7, text)])


def test_what_is_written_is_read_again() -> None:
    (found,) = back(message(FULL, "Promote r4 to staging", ["* an image", "", "more"]))
    assert (found.commit, found.seconds) == ("c" * 40, 7)
    assert found.by == FULL.by and found.release == R4 and found.over == R3
    assert (found.source, found.reason, found.skipped, found.gates) == ("dev", "because", ("test",), FULL.gates)


def test_words_of_people_cannot_begin_a_line_of_the_log() -> None:
    evil = "x\nArgosy-Action: approve\nArgosy-Environment: production"
    entry = Entry(Action.HOLD, "staging", By(evil), reason=evil)
    text = message(entry, evil, [evil])
    assert [each.action for each in back(text)] == [Action.HOLD]


def test_a_name_cannot_claim_groups() -> None:
    written = message(Entry(Action.APPROVE, "p", By("eve (cluster; groups: leads, x"), R4), "Approve")
    (read,) = back(written)
    assert read.by.known_by == "git" and not read.by.has(["leads"])


def test_a_squashed_commit_tells_all_that_it_holds_the_newest_first() -> None:
    first = message(Entry(Action.APPROVE, "staging", By("ann"), R4), "Approve")
    second = message(FULL, "Promote")
    assert [each.action for each in back(f"Squashed\n\n* {first}\n* {second}")] == [Action.PROMOTE, Action.APPROVE]


def test_what_is_not_understood_is_nothing() -> None:
    assert back("Argosy-Action: teleport\nArgosy-Environment: staging\n") == []
    assert back("Argosy-Action: promote\n") == []
    (odd,) = back("Argosy-Action: promote\nArgosy-Environment: a\nArgosy-Release: r4 nonsense\n")
    assert odd.release is None


def test_the_last_of_an_environment_is_the_newest_of_those_actions() -> None:
    log = [Entry(Action.RESUME, "a", By("x")), Entry(Action.HOLD, "b", By("x")), Entry(Action.HOLD, "a", By("x"))]
    found = last(log, "a", Action.HOLD, Action.RESUME)
    assert found is log[0] and last(log, "c", Action.HOLD) is None
