"""Limits evaluation of users' text: steps, characters, depth.

In: the work to be done. Out: nothing, or a LimitError. Never: counts time: the isolation of the worker does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argosy.errors import LimitError

MAX_STEPS: Final = 200_000
MAX_CHARACTERS: Final = 1 << 20
MAX_DEPTH: Final = 60


class EvaluationBudget:
    """Counts the work of one evaluation."""

    __slots__ = ("characters", "depth", "steps")

    def __init__(self, steps: int = MAX_STEPS, characters: int = MAX_CHARACTERS) -> None:
        self.steps, self.characters, self.depth = steps, characters, 0

    def spend_steps(self, count: int = 1) -> None:
        self.steps -= count
        if self.steps < 0:
            raise LimitError("it takes too many steps; simplify it")

    def spend_characters(self, count: int) -> None:
        """Count characters or elements before they are created."""
        self.characters -= count
        if self.characters < 0:
            raise LimitError("it produces too much text; produce less")

    @contextmanager
    def enter_nested(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        try:
            yield
        finally:
            self.depth -= 1
