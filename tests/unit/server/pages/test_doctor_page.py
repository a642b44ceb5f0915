"""What of an advice can be typed, and what is words."""

from __future__ import annotations

import pytest

from argosy.server.pages.doctor import commands_of, words_of


@pytest.mark.parametrize(
    ("text", "commands", "words"),
    [
        ("look at the changes, then: argosy app diff a; argosy app sync a", ["argosy app diff a", "argosy app sync a"],
         "look at the changes, then"),
        ("correct it (argosy notebook logs a); or: kubectl delete nvj a -n b; Argo CD makes it again",
         ["kubectl delete nvj a -n b"], "correct it (argosy notebook logs a); or; Argo CD makes it again"),
        ("wait", [], "wait"),
        ("git pull", ["git pull"], ""),
        ("", [], ""),
    ],
)  # fmt: skip
def test_commands_are_told_from_words(text: str, commands: list[str], words: str) -> None:
    assert (commands_of(text), words_of(text)) == (commands, words)
