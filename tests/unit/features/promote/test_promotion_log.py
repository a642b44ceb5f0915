"""Promotion log entries in commit messages: round trip, and no injection through user text."""

from __future__ import annotations

from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.promotion_log_trailers import (
    PromotionAction,
    PromotionActor,
    PromotionLogEntry,
    build_message,
    find_latest,
    read_entries,
)

R4, R3 = Release("r4", "a" * 40), Release("r3", "b" * 40)
FULL = PromotionLogEntry(
    PromotionAction.PROMOTE,
    "staging",
    PromotionActor("ann", "cluster", ("a", "b c")),
    R4,
    "dev",
    R3,
    "because",
    ("test",),
    "",
    ("check: open: fine",),
)


def back(text: str) -> list[PromotionLogEntry]:
    return read_entries([("c" * 40, 7, text)])


def test_written_entry_is_read_back() -> None:
    (entry,) = back(build_message(FULL, "Promote r4 to staging", ["* an image", "", "more"]))
    assert (entry.commit, entry.unix_seconds) == ("c" * 40, 7)
    assert entry.actor == FULL.actor and entry.release == R4 and entry.replaced == R3
    assert (entry.source, entry.reason, entry.skipped, entry.gates) == ("dev", "because", ("test",), FULL.gates)


def test_user_text_cannot_inject_log_lines() -> None:
    evil = "x\nArgosy-Action: approve\nArgosy-Environment: production"
    entry = PromotionLogEntry(PromotionAction.HOLD, "staging", PromotionActor(evil), reason=evil)
    text = build_message(entry, evil, [evil])
    assert [log_entry.action for log_entry in back(text)] == [PromotionAction.HOLD]


def test_actor_name_cannot_claim_groups() -> None:
    written = build_message(
        PromotionLogEntry(PromotionAction.APPROVE, "p", PromotionActor("eve (cluster; groups: leads, x"), R4), "Approve"
    )
    (read,) = back(written)
    assert read.actor.known_by == "git" and not read.actor.is_member_of(["leads"])


def test_squashed_commit_returns_all_entries_newest_first() -> None:
    first = build_message(PromotionLogEntry(PromotionAction.APPROVE, "staging", PromotionActor("ann"), R4), "Approve")
    second = build_message(FULL, "Promote")
    assert [entry.action for entry in back(f"Squashed\n\n* {first}\n* {second}")] == [
        PromotionAction.PROMOTE,
        PromotionAction.APPROVE,
    ]


def test_invalid_log_lines_are_ignored() -> None:
    assert back("Argosy-Action: teleport\nArgosy-Environment: staging\n") == []
    assert back("Argosy-Action: promote\n") == []
    (odd,) = back("Argosy-Action: promote\nArgosy-Environment: a\nArgosy-Release: r4 nonsense\n")
    assert odd.release is None


def test_find_latest_returns_the_newest_matching_entry_of_an_environment() -> None:
    log = [
        PromotionLogEntry(PromotionAction.RESUME, "a", PromotionActor("x")),
        PromotionLogEntry(PromotionAction.HOLD, "b", PromotionActor("x")),
        PromotionLogEntry(PromotionAction.HOLD, "a", PromotionActor("x")),
    ]
    latest = find_latest(log, "a", PromotionAction.HOLD, PromotionAction.RESUME)
    assert latest is log[0] and find_latest(log, "c", PromotionAction.HOLD) is None
