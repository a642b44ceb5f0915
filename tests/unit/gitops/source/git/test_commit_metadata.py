"""Parsing of author, time and message from the bytes of a commit."""

from __future__ import annotations

from argosy.gitops.source.git.commit_metadata import read_commit

HEAD = b"tree 1234\nparent 5678\nauthor Ann B <ann@example.org> 1767225600 -0130\ncommitter X <x> 1 +0000\n"
CONTENT = HEAD + b"\nSubject\n\nBody\n"
STRANGE = [b"", b"\n\nonly"]
STRANGE += [b"author <> 99999999999999 +0000", b"author A <a> 999999999999 +9999\n\nm", b"\xff\n\n\xff"]


def test_author_time_and_message_of_a_commit_are_read() -> None:
    commit = read_commit(CONTENT)
    assert commit.author == "Ann B <ann@example.org>" and commit.message == "Subject\n\nBody"
    assert commit.authored_at.isoformat() == "2025-12-31T22:30:00-01:30"


def test_malformed_commit_is_read_as_far_as_possible() -> None:
    assert [read_commit(content).message for content in STRANGE] == ["", "only", "", "m", "\ufffd"]
