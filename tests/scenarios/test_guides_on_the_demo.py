"""The shell blocks of the guides, run as written against one demo, in the order of their pages.

`make test` runs the quick start, `make test-all` every page.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters import KUBECTL
from support.demo import demo
from support.guide_blocks import BLOCKS, Block
from support.guide_blocks import text_of as text_among
from support.guide_terminal import GITHUB, Reader, Typed, blocks_of

pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)")
SCENARIOS = Path(__file__).parents[2] / "docs/reference/scenarios.md"
ROW = "| {id} | {told} | [`test_a_block_does_what_its_page_says`](../../tests/scenarios/test_guides_on_the_demo.py) |"
QUICK_START = "QUICK-START.md"
MIRROR = """\
oc patch configmap argosy-cm -n openshift-gitops --type merge -p '{{"data":{{"source.mirrors":"{lines}"}}}}'
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader at a demo whose repository also stands in for the one that the guides let readers create at GitHub."""
    with demo(tmp_path_factory.mktemp("demo") / "home", "--api-port", "0") as running_demo:
        guide_reader = Reader(running_demo)
        guide_reader.places[""] = guide_reader.home
        lines = "".join(f"{address} file://{running_demo.where['repository']}\\n" for address in GITHUB)
        assert guide_reader.type("", MIRROR.format(lines=lines)).failed == []
        yield guide_reader


def text_of(block: Block) -> str:
    return text_among(block, BLOCKS, blocks_of(block.page))


class Session:
    """Runs each block once, after the blocks above it on its page."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._results: dict[str, tuple[Typed, Typed, Typed]] = {}

    def typed(self, block: Block) -> tuple[Typed, Typed, Typed]:
        """Return the results of the preparation by others, of the block, and of the check of its promise."""
        for earlier_block in TYPED[: TYPED.index(block) + 1]:
            if earlier_block.page == block.page and earlier_block.id not in self._results:
                self._results[earlier_block.id] = self._type(earlier_block)
        return self._results[block.id]

    def _type(self, block: Block) -> tuple[Typed, Typed, Typed]:
        reader = self._reader
        if block.page not in reader.places:
            reader.begin(block.page)
        prepared = reader.others(block.page, block.first)
        edits = block.edits.format(home=reader.home) if "{home}" in block.edits else block.edits
        typed = reader.type(block.page, text_of(block), answers=block.answers, edits=edits, sees=block.sees)
        then = f"come_true {shlex.quote(block.then)}" if block.then else ""
        return prepared, typed, reader.others(block.page, then)


@pytest.fixture(scope="module")
def session(reader: Reader) -> Session:
    return Session(reader)


TYPED = [block for block in BLOCKS if not block.not_typed]
ROWS = [
    pytest.param(block, id=block.id, marks=() if block.page == QUICK_START else pytest.mark.tier("all"))
    for block in TYPED
]


@pytest.mark.parametrize("block", ROWS)
def test_a_block_does_what_its_page_says(session: Session, block: Block) -> None:
    prepared, typed, then = session.typed(block)
    assert prepared.failed == [], prepared.out
    typed.checked(block.shows, block.fails)
    assert then.failed == [], typed.out


def test_every_block_of_a_page_is_listed_and_has_a_row() -> None:
    for page in dict.fromkeys(block.page for block in BLOCKS):
        listed_texts = [text_of(block) for block in BLOCKS if block.page == page]
        assert listed_texts == blocks_of(page), f"{page}: the blocks and the list of them differ"
    rows = SCENARIOS.read_text()
    missing = [
        row for guide_block in BLOCKS if (row := ROW.format(id=guide_block.id, told=guide_block.told)) not in rows
    ]
    assert missing == []
