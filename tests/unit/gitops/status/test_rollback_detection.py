"""Detection of an active rollback from the status, and its description next to the revision in Git."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.status.rollback_detection import (
    PREVIOUS_HEALTH_INFO,
    find_active_rollback,
    find_restored_id_per_entry,
)

WORDS = "rolled back to deployment 0 by ann; main still has bbbbbbb"


def history(revisions: str, **last: Any) -> list[dict[str, Any]]:
    source = {"repoURL": "https://git.example.org/a", "path": "."}
    entries = [{"id": n, "revision": letter * 40, "source": source} for n, letter in enumerate(revisions)]
    return [*entries[:-1], {**entries[-1], "initiatedBy": {"username": "ann"}, **last}]


def status(revisions: str, now: str, *, left: str = "", word: str = "OutOfSync") -> dict[str, Any]:
    """Build a status; `left` is the health of the previous deployment when the rollback started."""
    info = [{"name": PREVIOUS_HEALTH_INFO, "value": left}]
    state = {"operation": {"info": info}, "syncResult": {"revision": revisions[-1] * 40}}
    return {
        "history": history(revisions),
        "sync": {"status": word, "revision": now * 40},
        "operationState": state if left else {},
    }


@pytest.mark.parametrize(
    ("app_status", "expected"),
    [
        (status("aba", "b", left="Degraded"), f"{WORDS}, which was Degraded"),
        (status("aba", "b", left="Healthy"), WORDS),
        (status("aba", "b"), WORDS),
        (status("aba", "c", left="Degraded"), "rolled back to deployment 0 by ann; main has ccccccc"),
        (status("aba", "a"), ""),  # Git was reverted as well
        (status("aba", "b", word="Synced"), ""),  # Git now renders the same manifests
        (status("abc", "d"), ""),
        (status("ab", "c"), ""),
        (status("aab", "c"), ""),
        ({"history": "odd", "sync": None}, ""),
    ],
)
def test_rollback_is_reported_while_git_has_another_revision(app_status: dict[str, Any], expected: str) -> None:
    assert str(find_active_rollback(app_status, "main") or "") == expected


def test_resync_of_the_same_revision_is_not_another_rollback() -> None:
    assert find_restored_id_per_entry(history("abaab")) == [None, None, 0, None, 1]


def test_same_commit_with_another_path_is_not_a_rollback() -> None:
    assert find_restored_id_per_entry(history("aba", source={"path": "other"})) == [None, None, None]
