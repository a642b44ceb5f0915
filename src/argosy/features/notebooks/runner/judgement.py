"""Validates one run: source rules, silent failures, expectations, golden comparison.

In: a notebook before it runs, each cell after it ran, the finished run. Out: a ValidationResult. Never: inserts a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.features.notebooks.runner import golden
from argosy.features.notebooks.runner.categories import GOLDEN
from argosy.features.notebooks.runner.execution import Ran
from argosy.features.notebooks.runner.findings import Finding
from argosy.features.notebooks.runner.observer import Watch
from argosy.features.notebooks.runner.order import Comparison, OrderError, Validation
from argosy.features.notebooks.runner.results import Verdict

Tell = Callable[[Mapping[str, Any]], None]


class Judge:
    """Validates a run; `on_finding` receives each finding as soon as it exists."""

    def __init__(
        self,
        comparison: Comparison,
        validation: Validation,
        golden_notebook: Mapping[str, Any] | None,
        tell: Tell = lambda event: None,
    ) -> None:
        self._comparison, self._validation, self._golden, self._tell = comparison, validation, golden_notebook, tell
        self._watch = Watch({}, validation)

    def before(self, notebook: Mapping[str, Any]) -> Verdict | None:
        """Return a result if the notebook must not run. Raises RunRequestError if it could not be compared after the
        run.
        """
        try:
            golden.normalizer(self._comparison)
        except ValueError as problem:
            raise OrderError(str(problem)) from None
        self._watch = Watch(notebook, self._validation)
        self._say(self._watch.before())
        error, category = self._watch.failure
        return Verdict(error, category, findings=self._watch.wire()) if error else None

    def question(self, index: int) -> str:
        return self._watch.question(index)

    def after_cell(self, index: int, cell: Mapping[str, Any], said: str) -> None:
        """Inspect the values and outputs of the cell."""
        self._say(self._watch.after(index, cell, said))

    def verdict(self, ran: Ran) -> Verdict:
        if ran.failure is None:
            self._say(self._watch.finish())
        error, category = self._watch.failure
        comparison = self._compared(ran)
        if not error and comparison is not None and comparison["result"] == "failed":
            error, category = golden.failure_message(comparison), GOLDEN
        return Verdict(error, category, comparison, self._watch.wire())

    def _compared(self, ran: Ran) -> dict[str, Any] | None:
        """Compare with the golden notebook. After a failure the later cells have saved outputs only, so nothing is
        compared.
        """
        if self._golden is None:
            return None
        if ran.failure is not None:
            return {**golden.NOT_COMPARED, "strategy": self._comparison.strategy}
        return golden.compare(ran.notebook, self._golden, self._comparison)

    def _say(self, found: list[Finding]) -> None:
        for each in found:
            self._tell({"event": "finding", **each.as_wire(with_example=False)})
