"""The shell blocks of the guides with what each does at the demo, as tests/data/guides/blocks.yaml lists them.

In: that file. Out: BLOCKS. Never: the text of a block; that stands in its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

LIST = Path(__file__).parent / "data" / "guides" / "blocks.yaml"


@dataclass(frozen=True)
class Block:
    """What the fields mean stands at the top of the list."""

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

    @property
    def told(self) -> str:
        """For a row of a table."""
        text = f"`{self.page}`, `{self.begins}`: {'not typed, ' + self.not_typed if self.not_typed else self.verdict}"
        return text.replace("|", "\\|")


def _read() -> tuple[Block, ...]:
    found = yaml.safe_load(LIST.read_text())
    return tuple(Block(page=page, **each) for page, blocks in found.items() for each in blocks)


BLOCKS = _read()
