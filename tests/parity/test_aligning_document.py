"""The stages document: the demo shows the states of its table, and docs/guides/aligning.md has its shell blocks."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from argosy.features.demo.stages_example_cluster_setup import EXPECTED_STATES, ROOT_APP
from argosy.gitops.analysis.alignment.field_writer_catalog import DOCUMENTED

HERE = Path(__file__).parents[2]
SEEDS = HERE.parent / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="../shared/seeds is not here")
BLOCK = re.compile(r"^ *```bash\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (stage0\S+) \| (\w+)/(\w+)( \(Warning\))?(?: \+ (\w+))? \|", re.MULTILINE)
POINTER = re.compile(r"^ +- (/\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def document() -> str:
    [path] = SEEDS.glob("003_*.txt")
    return path.read_text(errors="replace")


def test_demo_states_equal_the_table_of_the_document(document: str) -> None:
    table, _, _ = document.partition("Fixes Applied")
    states = {
        name: ((sync, health), {"SharedResourceWarning"} if warning else {error} if error else set())
        for name, sync, health, warning, error in ROW.findall(table)
    }
    assert states == {name: state for name, state in EXPECTED_STATES.items() if name != ROOT_APP} and len(states) == 7
    synced = sum(words[0] == "Synced" for words, _ in EXPECTED_STATES.values())
    assert f"{synced}/{len(EXPECTED_STATES)} ({100 * synced / len(EXPECTED_STATES):.1f}%)" in document


def test_every_shell_block_of_the_document_is_in_the_aligning_guide(document: str) -> None:
    ours = BLOCK.findall((HERE / "docs/guides/aligning.md").read_text())
    document_blocks = [textwrap.dedent(block) for block in BLOCK.findall(document)]
    assert len(document_blocks) == 4 and [block for block in document_blocks if block not in ours] == []
    typed = re.findall(r"`(oc get [^`]+)`", document)
    assert len(typed) == 3 and "\n".join(typed) + "\n" in ours


def test_json_pointers_of_the_document_equal_the_documented_patterns(document: str) -> None:
    written = set(POINTER.findall(document))
    documented_pointers = {pointer for rule in DOCUMENTED for pointer in rule.pointers if rule.kind != "Gateway"}
    assert written == documented_pointers
