"""Output of multi-step commands: lines and tables.

In: texts. Out: values that every multi-step command prints alike. Never: prints.
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
Ask = Callable[[str], str]  # question -> answer; empty at the end of input


def banner(title: str) -> list[str]:
    return [RULE, title, RULE]
