"""What a text of a user may spend: steps, characters, depth.

In: what is about to be done. Out: nothing, or a LimitError. Never: counts time: who confines the worker does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argosy.errors import LimitError

MOST_STEPS: Final = 200_000
MOST_CHARACTERS: Final = 1 << 20
MOST_DEPTH: Final = 60


class Meter:
    """One evaluation's spending."""

    __slots__ = ("characters", "depth", "steps")

    def __init__(self, steps: int = MOST_STEPS, characters: int = MOST_CHARACTERS) -> None:
        self.steps, self.characters, self.depth = steps, characters, 0

    def step(self, count: int = 1) -> None:
        self.steps -= count
        if self.steps < 0:
            raise LimitError("it takes too many steps; write it simpler")

    def grow(self, count: int) -> None:
        """Characters, or elements, that are about to be made."""
        self.characters -= count
        if self.characters < 0:
            raise LimitError("it makes too much text; write less")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise LimitError("it is nested too deeply; write it flatter")
        try:
            yield
        finally:
            self.depth -= 1
