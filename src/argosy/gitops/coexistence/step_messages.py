"""What steps have to say: lines and tables.

In: words. Out: the same, in the forms that every command of this room uses. Never: prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

RULE: Final = "=" * 42


@dataclass(frozen=True)
class Table:
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


Said = str | Table
Tell = Callable[[Said], None]
Ask = Callable[[str], str]  # a question in; what was typed, empty at the end of input


def banner(title: str) -> list[str]:
    return [RULE, title, RULE]
