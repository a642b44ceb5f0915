"""Validates one run: source rules, silent failures, expectations, golden comparison.

In: a notebook before it runs, each cell after it ran, the finished run. Out: a ValidationResult. Never: inserts a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.features.notebooks.runner import golden_notebook_comparison
from argosy.features.notebooks.runner.cell_execution import ExecutionResult
from argosy.features.notebooks.runner.failure_category_names import GOLDEN
from argosy.features.notebooks.runner.finding_collector import RunObserver
from argosy.features.notebooks.runner.findings_that_fail_validation import NotebookFinding
from argosy.features.notebooks.runner.results import ValidationResult
from argosy.features.notebooks.runner.run_request import ComparisonConfig, RunRequestError, ValidationConfig

FindingListener = Callable[[Mapping[str, Any]], None]


class RunValidator:
    """Validates a run; `on_finding` receives each finding as soon as it exists."""

    def __init__(
        self,
        comparison: ComparisonConfig,
        validation: ValidationConfig,
        golden_notebook: Mapping[str, Any] | None,
        on_finding: FindingListener = lambda event: None,
    ) -> None:
        self._comparison, self._validation, self._golden, self._on_finding = (
            comparison,
            validation,
            golden_notebook,
            on_finding,
        )
        self._observer = RunObserver({}, validation)

    def check_before_run(self, notebook: Mapping[str, Any]) -> ValidationResult | None:
        """Return a result if the notebook must not run. Raises RunRequestError if it could not be compared after the
        run.
        """
        try:
            golden_notebook_comparison.build_normalizer(self._comparison)
        except ValueError as pattern_error:
            raise RunRequestError(str(pattern_error)) from None
        self._observer = RunObserver(notebook, self._validation)
        self._report(self._observer.check_source())
        error, category = self._observer.failure
        return ValidationResult(error, category, findings=self._observer.to_wire()) if error else None

    def build_question(self, index: int) -> str:
        return self._observer.build_question(index)

    def on_cell_executed(self, index: int, cell: Mapping[str, Any], reply: str) -> None:
        """Inspect the values and outputs of the cell."""
        self._report(self._observer.check_cell(index, cell, reply))

    def build_result(self, execution: ExecutionResult) -> ValidationResult:
        if execution.failure is None:
            self._report(self._observer.finish())
        error, category = self._observer.failure
        comparison = self._compare(execution)
        if not error and comparison is not None and comparison["result"] == "failed":
            error, category = golden_notebook_comparison.describe_mismatch(comparison), GOLDEN
        return ValidationResult(error, category, comparison, self._observer.to_wire())

    def _compare(self, execution: ExecutionResult) -> dict[str, Any] | None:
        """Compare with the golden notebook. After a failure the later cells have saved outputs only, so nothing is
        compared.
        """
        if self._golden is None:
            return None
        if execution.failure is not None:
            return {**golden_notebook_comparison.SKIPPED_COMPARISON, "strategy": self._comparison.strategy}
        return golden_notebook_comparison.compare_to_wire(execution.notebook, self._golden, self._comparison)

    def _report(self, findings: list[NotebookFinding]) -> None:
        for finding in findings:
            self._on_finding({"event": "finding", **finding.to_wire(with_example=False)})
