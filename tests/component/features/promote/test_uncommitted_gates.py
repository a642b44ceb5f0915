"""Uncommitted edits of gates in argosy.yaml: `argosy promote` ignores them, and its commands print a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.promotion_repository import DELIVERY, Shelf, begin, copy_of

UNGATED = DELIVERY.replace("    gates:\n      - approval: leads\n", "")
NOTE = "uncommitted edits are ignored: commit them first"
GATES = f"note: argosy.yaml: gates of production are approval leads in the commit, and none in the working tree; {NOTE}"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(tmp_path_factory.mktemp("begun") / "web")


@pytest.fixture
def web(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return copy_of(begun, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "words",
    [("status",), ("plan", "--to", "production"), ("run", "--to", "production"), ("approve", "production"),
     ("history",), ("status", "-o", "json")],
    ids=" ".join,
)  # fmt: skip
def test_commands_print_note_when_gate_removal_is_uncommitted(web: Shelf, words: tuple[str, ...]) -> None:
    assert NOTE not in web.argosy(*words, code=None).err
    web.write("argosy.yaml", UNGATED)
    assert GATES in web.argosy(*words, code=None).err.splitlines()


def test_uncommitted_gate_removal_still_blocks_promotion(web: Shelf) -> None:
    web.argosy("run", "--to", "staging")
    web.write("argosy.yaml", UNGATED)
    refused = web.argosy("run", "--to", "production", code=None)
    assert refused.code != 0 and GATES in refused.err.splitlines()
    assert "1.1" not in web.images("production")
    web.commit("Without a gate")
    assert NOTE not in web.argosy("plan", "--to", "production", code=None).err


def test_status_notes_uncommitted_gate_order_and_role_edits(web: Shelf) -> None:
    edited = DELIVERY.replace("after: dev}", "after: dev, gates: [{soak: 1h}]}").replace("after: staging", "after: dev")
    web.write("argosy.yaml", edited.replace("ann@example.com", "bob@example.com"))
    output = web.argosy("status").err
    assert f"gates of staging are none in the commit, and soak 1h in the working tree; {NOTE}" in output
    assert f"production is after staging in the commit, and after dev in the working tree; {NOTE}" in output
    assert f"the role leads differs from the commit; {NOTE}" in output


def test_uncommitted_comment_prints_no_note(web: Shelf) -> None:
    web.write("argosy.yaml", f"{DELIVERY}# a comment\n")
    assert NOTE not in web.argosy("status").err


def test_unparsable_working_tree_file_prints_note_and_committed_file_is_used(web: Shelf) -> None:
    web.write("argosy.yaml", "kind: [")
    output = web.argosy("plan", "--to", "staging").err
    assert "note: argosy.yaml in the working tree cannot be read, so the committed file is used: " in output


def test_status_fails_when_argosy_yaml_is_not_committed(web: Shelf) -> None:
    web.git("rm", "-q", "--cached", "argosy.yaml")
    web.git("commit", "-qm", "Without it")
    refused = web.argosy("status", code=None)
    assert refused.code != 0
    assert "argosy.yaml: not committed, and uncommitted files are ignored" in refused.err
    named = web.argosy("status", "--repo", str(web.folder), code=None)
    assert "argosy.yaml: not committed, and uncommitted files are ignored" in named.err


def test_staged_gate_removal_counts_as_uncommitted(web: Shelf) -> None:
    web.write("argosy.yaml", UNGATED)
    web.git("add", "argosy.yaml")
    assert GATES in web.argosy("status").err.splitlines()
