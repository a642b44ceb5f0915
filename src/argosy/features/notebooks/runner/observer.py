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

from argosy.features.notebooks.runner import expectations, silent_failures
from argosy.features.notebooks.runner.cells import Cell, Notebook, numbered
from argosy.features.notebooks.runner.findings import MOST_FINDINGS, SEVERITIES, Finding, failure
from argosy.features.notebooks.runner.order import Validation
from argosy.features.notebooks.runner.source_rules import Reading, found_in
from argosy.features.notebooks.runner.variables import assigned


class Watch:
    def __init__(self, notebook: Notebook, validation: Validation) -> None:
        self.findings: list[Finding] = []
        self._validation = validation
        self._reading = Reading.of(notebook)
        # The run writes its outputs into these same cells.
        self._stored = dict(numbered(deepcopy(notebook) if validation.check_output_types else notebook))
        self._made = {index: assigned(tree) for index, tree in self._reading.trees}
        self._sources = {cell.index: cell.source for cell in self._reading.cells}
        self._own = _functions(self._reading)
        self._before: dict[str, Mapping[str, Any]] = {}
        self._incomplete: set[str] = set()
        self._met: set[int] = set()
        self._has_asked = self._is_known = False  # the kernel was asked after this cell; it answered last time

    def before(self) -> list[Finding]:
        wrong = expectations.problems(self._validation.expected, len(self._stored))
        return self._keep([*found_in(self._reading, self._validation), *wrong])

    def question(self, index: int) -> str:
        is_expected = any(each.cell == index for each in self._validation.expected)
        self._has_asked = index in self._made and (is_expected or self._is_telling(index))
        if not self._has_asked:
            return ""
        return silent_failures.question(self._made[index], is_known=self._is_known)

    def _is_telling(self, index: int) -> bool:
        """True if the values of the cell can be surprising. Asking takes time, and most cells assign nothing."""
        made = any(how != "literal" for how, _ in self._made[index].values())
        return self._validation.detect_silent_failures and (
            made or silent_failures.gives_commands(self._sources[index])
        )

    def after(self, index: int, cell: Cell, said: str) -> list[Finding]:
        """Check a cell that has its outputs; `reply` is the kernel's reply to the question, "" if none was asked."""
        answered = silent_failures.answer(said)
        self._is_known = bool(answered) if self._has_asked else self._is_known
        found = list(silent_failures.shown_by_cell(index, cell, answered.get("exit"), self._validation))
        if self._validation.detect_silent_failures:
            known = silent_failures.Known(
                self._reading.names.watched, self._own, self._before, frozenset(self._incomplete)
            )
            found += silent_failures.values_made(index, answered, self._made.get(index, {}), known)
        if self._validation.check_output_types and index in self._stored:
            found += expectations.other_output_types(index, self._stored[index], cell)
        for each in self._validation.expected:
            if each.cell == index:
                self._met.add(index)
                found += expectations.unmet(each, cell, self._given(index, answered))
        self._remember(index, answered)
        return self._keep(found)

    def finish(self) -> list[Finding]:
        """Report expectations of cells that did not run."""
        waiting = [
            each for each in self._validation.expected if each.cell in self._stored and each.cell not in self._met
        ]
        message = "did not run, but an output is expected"
        return self._keep([Finding(each.cell, "error", expectations.EMPTY, message) for each in waiting])

    @property
    def failure(self) -> tuple[str, str]:
        return failure(self.findings, self._validation.level, strict=self._validation.strict)

    def wire(self) -> list[dict[str, Any]]:
        """Entries of `status.educationalFeedback`: the most severe ones if there are too many, in cell order."""
        worst = sorted(self.findings, key=lambda each: -SEVERITIES.index(each.severity))[:MOST_FINDINGS]
        kept = sorted(worst, key=lambda each: each.cell)
        return [each.as_wire(with_example=self._validation.educational) for each in kept]

    def _keep(self, found: list[Finding]) -> list[Finding]:
        fresh = [each for each in dict.fromkeys(found) if each not in self.findings]
        self.findings += fresh
        return fresh

    def _given(self, index: int, answered: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Facts about the value that the cell ends with, or else about the last value that it assigns."""
        if answered.get("result") is not None:
            shown: Mapping[str, Any] = answered["result"]
            return shown
        values = answered.get("values") or {}
        last = next((name for name in reversed(self._made.get(index, {})) if name in values), None)
        return values[last] if last is not None else None

    def _remember(self, index: int, answered: Mapping[str, Any]) -> None:
        values = answered.get("values") or {}
        made = self._made.get(index, {})
        for name, facts in values.items():
            if name in made and made[name][0] == "read":
                self._incomplete |= set(facts.get("columns") or ())
        self._before |= values


def _functions(reading: Reading) -> frozenset[str]:
    """Functions of the notebook, and those that it imports from outside of the standard library."""
    found = {
        name for name, full in reading.names.short.items() if full.partition(".")[0] not in sys.stdlib_module_names
    }
    for _, tree in reading.trees:
        found |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return frozenset(found)
