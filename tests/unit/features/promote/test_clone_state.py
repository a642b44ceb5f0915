"""State of a clone relative to its upstream branch: notes, and states that block writing."""

from __future__ import annotations

import pytest

from argosy.features.promote.shallow_or_behind_clone_gate import SHALLOW_CLONE_MESSAGE, check_clone, list_clone_notes
from argosy.gitops.workspace.git_repository import UpstreamState


@pytest.mark.parametrize(
    ("clone", "reason", "advice"),
    [
        (UpstreamState(is_shallow=True), SHALLOW_CLONE_MESSAGE, "git fetch --unshallow"),
        (UpstreamState(upstream="origin/main", behind=2), "this branch is 2 commits behind origin/main", "git pull"),
        (UpstreamState(upstream="o/m", behind=1, ahead=1), "this branch is 1 commit behind o/m", "git pull --rebase"),
        (
            UpstreamState(upstream="origin/HEAD", behind=3, is_detached=True),
            "HEAD is detached, and 3 commits behind origin/HEAD",
            "check a branch out: git switch BRANCH",
        ),
    ],
)
def test_shallow_or_outdated_clone_blocks_writing_with_advice(clone: UpstreamState, reason: str, advice: str) -> None:
    (gate_result,) = check_clone(clone)
    assert (gate_result.is_open, gate_result.reason, gate_result.next_command) == (False, reason, advice)
    assert f"{reason}; {advice}" in list_clone_notes(clone)


def test_unpushed_commits_are_noted_and_do_not_block_writing() -> None:
    clone = UpstreamState(upstream="origin/main", ahead=3)
    assert check_clone(clone) == []
    assert list_clone_notes(clone) == ["3 commits not pushed to origin/main, so not deployed; git push"]


def test_up_to_date_clone_has_no_notes_and_blocks_nothing() -> None:
    assert list_clone_notes(UpstreamState(upstream="origin/main")) == check_clone(UpstreamState()) == []
