"""The shell blocks of the guides and their expected effects in the demo, from tests/data/guides/.

In: those files. Out: BLOCKS, NOTEBOOK_BLOCKS, ALIGNING_BLOCKS. Never: the text of a block, which is in its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from support.paths import DATA

LISTS = DATA / "guides"


@dataclass(frozen=True)
class Block:
    """One shell block. The comment at the top of blocks.yaml documents the fields."""

    page: str
    id: str
    begins: str
    verdict: str = ""
    not_typed: str = ""
    first: str = ""
    edits: str = ""
    answers: str = ""
    sees: str = ""
    shows: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    then: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """Description for a table row."""
        text = f"`{self.page}`, `{self.begins}`: {'not typed, ' + self.not_typed if self.not_typed else self.verdict}"
        return text.replace("|", "\\|")


def _read(name: str) -> tuple[Block, ...]:
    pages = yaml.safe_load((LISTS / name).read_text())
    return tuple(Block(page=page, **block) for page, blocks in pages.items() for block in blocks)


def text_of(block: Block, blocks: tuple[Block, ...], texts: list[str]) -> str:
    """The n-th text with this beginning, for the n-th block of the list with this beginning."""
    same = [other for other in blocks if (other.page, other.begins) == (block.page, block.begins)]
    return [text for text in texts if text.lstrip().startswith(block.begins)][same.index(block)]


BLOCKS = _read("blocks.yaml")
NOTEBOOK_BLOCKS = _read("notebooks.yaml")
ALIGNING_BLOCKS = _read("aligning.yaml")
