"""Collects the findings of one run, from before the first cell to after the last.

In: a notebook, each cell after it ran, the kernel's answers. Out: findings, and the failure they cause. Never: talks to
a kernel.

    observer = RunObserver(notebook, validation)
    observer.check_source()                       findings of the source
    expression = observer.build_question(index)   evaluated right after the cell; "": nothing to evaluate
    observer.check_cell(index, cell, reply)       findings of a cell that ran; `reply` is the value of the expression
    observer.finish(); observer.failure           message and category; both empty if nothing blocks
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from argosy.features.notebooks.runner import expected_cell_output_check, silent_failures
from argosy.features.notebooks.runner.cell_source_and_tags import Cell, Notebook, enumerate_cells
from argosy.features.notebooks.runner.findings_that_fail_validation import (
    MAX_FINDINGS,
    SEVERITIES,
    NotebookFinding,
    describe_failure,
)
from argosy.features.notebooks.runner.imported_and_assigned_names import list_assignments
from argosy.features.notebooks.runner.run_request import ValidationConfig
from argosy.features.notebooks.runner.source_rules import ParsedNotebook, check_source


class RunObserver:
    def __init__(self, notebook: Notebook, validation: ValidationConfig) -> None:
        self.findings: list[NotebookFinding] = []
        self._validation = validation
        self._parsed_notebook = ParsedNotebook.parse(notebook)
        # The run writes its outputs into these same cells.
        self._saved_cells = dict(enumerate_cells(deepcopy(notebook) if validation.check_output_types else notebook))
        self._assignments = {index: list_assignments(tree) for index, tree in self._parsed_notebook.trees}
        self._sources = {cell.index: cell.source for cell in self._parsed_notebook.cells}
        self._notebook_functions = _list_non_stdlib_functions(self._parsed_notebook)
        self._known_values: dict[str, Mapping[str, Any]] = {}
        self._incomplete_columns: set[str] = set()
        self._checked_cells: set[int] = set()
        self._was_asked = self._is_probe_loaded = False  # the kernel was asked after this cell; it answered last time

    def check_source(self) -> list[NotebookFinding]:
        expectation_findings = expected_cell_output_check.check_expectations(
            self._validation.expected, len(self._saved_cells)
        )
        return self._add_new([*check_source(self._parsed_notebook, self._validation), *expectation_findings])

    def build_question(self, index: int) -> str:
        has_expectation = any(expectation.cell == index for expectation in self._validation.expected)
        self._was_asked = index in self._assignments and (has_expectation or self._needs_inspection(index))
        if not self._was_asked:
            return ""
        return silent_failures.build_question(self._assignments[index], is_probe_loaded=self._is_probe_loaded)

    def _needs_inspection(self, index: int) -> bool:
        """True if the values of the cell can be surprising. Asking takes time, and most cells assign nothing."""
        has_computed_values = any(origin != "literal" for origin, _ in self._assignments[index].values())
        return self._validation.detect_silent_failures and (
            has_computed_values or silent_failures.has_unchecked_commands(self._sources[index])
        )

    def check_cell(self, index: int, cell: Cell, reply: str) -> list[NotebookFinding]:
        """Check a cell that has its outputs; `reply` is the kernel's reply to the question, "" if none was asked."""
        answer = silent_failures.read_answer(reply)
        self._is_probe_loaded = bool(answer) if self._was_asked else self._is_probe_loaded
        findings = list(silent_failures.check_cell_outputs(index, cell, answer.get("exit"), self._validation))
        if self._validation.detect_silent_failures:
            context = silent_failures.NotebookContext(
                self._parsed_notebook.names.checked_names,
                self._notebook_functions,
                self._known_values,
                frozenset(self._incomplete_columns),
            )
            findings += silent_failures.check_values(index, answer, self._assignments.get(index, {}), context)
        if self._validation.check_output_types and index in self._saved_cells:
            findings += expected_cell_output_check.check_output_types(index, self._saved_cells[index], cell)
        for expectation in self._validation.expected:
            if expectation.cell == index:
                self._checked_cells.add(index)
                findings += expected_cell_output_check.check_output(
                    expectation, cell, self._find_value_facts(index, answer)
                )
        self._remember_values(index, answer)
        return self._add_new(findings)

    def finish(self) -> list[NotebookFinding]:
        """Report expectations of cells that did not run."""
        unchecked = [
            expectation
            for expectation in self._validation.expected
            if expectation.cell in self._saved_cells and expectation.cell not in self._checked_cells
        ]
        message = "did not run, but an output is expected"
        return self._add_new(
            [
                NotebookFinding(expectation.cell, "error", expected_cell_output_check.EMPTY, message)
                for expectation in unchecked
            ]
        )

    @property
    def failure(self) -> tuple[str, str]:
        return describe_failure(self.findings, self._validation.level, strict=self._validation.strict)

    def to_wire(self) -> list[dict[str, Any]]:
        """Entries of `status.educationalFeedback`: the most severe ones if there are too many, in cell order."""
        worst = sorted(self.findings, key=lambda finding: -SEVERITIES.index(finding.severity))[:MAX_FINDINGS]
        ordered = sorted(worst, key=lambda finding: finding.cell)
        return [finding.to_wire(with_example=self._validation.educational) for finding in ordered]

    def _add_new(self, findings: list[NotebookFinding]) -> list[NotebookFinding]:
        new_findings = [finding for finding in dict.fromkeys(findings) if finding not in self.findings]
        self.findings += new_findings
        return new_findings

    def _find_value_facts(self, index: int, answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Facts about the value that the cell ends with, or else about the last value that it assigns."""
        if answer.get("result") is not None:
            result: Mapping[str, Any] = answer["result"]
            return result
        values = answer.get("values") or {}
        last_name = next((name for name in reversed(self._assignments.get(index, {})) if name in values), None)
        return values[last_name] if last_name is not None else None

    def _remember_values(self, index: int, answer: Mapping[str, Any]) -> None:
        values = answer.get("values") or {}
        assignments = self._assignments.get(index, {})
        for name, facts in values.items():
            if name in assignments and assignments[name][0] == "read":
                self._incomplete_columns |= set(facts.get("columns") or ())
        self._known_values |= values


def _list_non_stdlib_functions(notebook: ParsedNotebook) -> frozenset[str]:
    """Functions of the notebook, and those that it imports from outside of the standard library."""
    functions = {
        name for name, full in notebook.names.aliases.items() if full.partition(".")[0] not in sys.stdlib_module_names
    }
    for _, tree in notebook.trees:
        functions |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return frozenset(functions)
