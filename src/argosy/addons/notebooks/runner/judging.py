"""All judges of one run, in the order in which they look.

In: a notebook before it runs, a kernel after each cell, the run when it is over. Out: a verdict. Never: inserts a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.addons.notebooks.runner.executing import Ask, Ran
from argosy.addons.notebooks.runner.order import Comparison, Validation
from argosy.addons.notebooks.runner.results import Verdict


class Judge:
    def __init__(self, comparison: Comparison, validation: Validation, golden: Mapping[str, Any] | None) -> None:
        self._comparison, self._validation, self._golden = comparison, validation, golden
        self.looks = False  # whether the kernel is asked after each cell

    def before(self, notebook: Mapping[str, Any]) -> Verdict | None:
        """What keeps it from being run at all."""
        return None

    async def after_cell(self, ask: Ask, index: int, cell: Mapping[str, Any]) -> None:
        """A look into the kernel."""

    def verdict(self, ran: Ran) -> Verdict:
        return Verdict()
