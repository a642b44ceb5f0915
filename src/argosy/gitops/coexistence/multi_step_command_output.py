"""Output of multi-step commands: lines and tables.

In: texts. Out: values that every multi-step command prints alike. Never: prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

BANNER_LINE: Final = "=" * 42


@dataclass(frozen=True)
class TextTable:
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


StepOutput = str | TextTable
PrintStep = Callable[[StepOutput], None]
AskUser = Callable[[str], str]  # question -> answer; empty at the end of input


def build_banner(title: str) -> list[str]:
    return [BANNER_LINE, title, BANNER_LINE]
