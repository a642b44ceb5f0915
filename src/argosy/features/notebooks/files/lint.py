"""Lints a notebook without running it.

In: a notebook from Git. Out: remarks with a rule, a location and advice. Never: prints a secret that it found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.features.notebooks.runner.cell_source_and_tags import (
    IGNORE,
    SKIP,
    Notebook,
    enumerate_cells,
    get_source,
    join_text,
    list_outputs,
    read_marks,
)
from argosy.features.notebooks.runner.findings_that_fail_validation import (
    THRESHOLDS,
    WHOLE_NOTEBOOK,
    NotebookFinding,
    list_blocking_findings,
)
from argosy.features.notebooks.runner.parameters import read_declared_parameters
from argosy.features.notebooks.runner.run_request import ValidationConfig
from argosy.features.notebooks.runner.silent_failures import MAGIC, NAN, check_cell_outputs
from argosy.features.notebooks.runner.source_rules import SILENT_FAILURE, ParsedNotebook, check_source

OUT_OF_ORDER, UNKNOWN_PARAMETER, STORED_ERROR, SECRET_IN_NOTEBOOK, RANDOM_OUTPUT, INVALID_SYNTAX = (
    "out-of-order",
    "unknown-parameter",
    "stored-error",
    "secret-in-notebook",
    "nondeterministic-output",
    "invalid-syntax",
)
RULES: Final = {
    OUT_OF_ORDER: "AGY303",
    UNKNOWN_PARAMETER: "AGY303",
    INVALID_SYNTAX: "AGY303",
    STORED_ERROR: "AGY304",
    SECRET_IN_NOTEBOOK: "AGY304",
    RANDOM_OUTPUT: "AGY305",
}
SILENT_RULE: Final = "AGY306"  # everything that can fail silently
# What that rule finds that is a visible failure, not only a possible one.
VISIBLE_FAILURES: Final = frozenset({SILENT_FAILURE, MAGIC, NAN})
_SECRET_PATTERNS: Final = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")),
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})")),
    ("a GitLab token", re.compile(r"\bglpat-[\w-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[\w-]{10,}")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,5000}\.[\w-]{10,}")),
    ("a password in a URL", re.compile(r"\b[a-z][a-z0-9+]{1,12}://[^\s/:@\"'{}]{1,80}:[^\s/@\"'{}$]{4,80}@")),
)
_RANDOM_FUNCTIONS: Final = ("random.", "numpy.random.", "uuid.uuid1", "uuid.uuid4", "secrets.", "torch.rand")
_SEED_PATTERN: Final = re.compile(
    r"\bseed\(|manual_seed|random_state\s*=|default_rng\(\s*\w|RandomState\(\s*\w|Random\(\s*\w"
)


@dataclass(frozen=True)
class LintRemark:
    file: str
    finding: NotebookFinding

    @property
    def rule(self) -> str:
        return RULES.get(self.finding.category, SILENT_RULE)

    def to_wire(self) -> dict[str, Any]:
        return {"file": self.file, "rule": self.rule, "line": self.finding.line, **self.finding.to_wire()}


def lint_notebook(
    file: str, notebook: Notebook, validation: ValidationConfig, parameter_names: Sequence[str] = ()
) -> list[LintRemark]:
    """`parameter_names`: names of parameters that will be set."""
    parsed_notebook = ParsedNotebook.parse(notebook)
    findings = [
        *_check_syntax(parsed_notebook),
        *check_source(parsed_notebook, validation),
        *_check_execution_order(notebook),
        *_check_stored_errors(notebook),
        *_check_secrets(notebook),
        *_check_randomness(notebook, parsed_notebook),
        *_check_parameters(notebook, parameter_names),
    ]
    return [LintRemark(file, finding) for finding in sorted(findings, key=lambda finding: (finding.cell, finding.line))]


def find_saved_failures(file: str, notebook: Notebook) -> list[LintRemark]:
    """Failures that the saved outputs show."""
    categories = (MAGIC, NAN)
    findings = [
        finding
        for index, cell in enumerate_cells(notebook)
        for finding in check_cell_outputs(index, cell, None, ValidationConfig.from_wire({}))
        if finding.category in categories
    ]
    return [LintRemark(file, finding) for finding in findings]


def list_failing_remarks(remarks: Sequence[LintRemark], level: str) -> list[LintRemark]:
    assert level in THRESHOLDS
    blocking_ids = set(map(id, list_blocking_findings([remark.finding for remark in remarks], level)))
    return [remark for remark in remarks if id(remark.finding) in blocking_ids]


def _check_syntax(parsed_notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    for cell in parsed_notebook.cells:
        if cell.parsed.syntax_error:
            message = f"is not valid Python: {cell.parsed.syntax_error}"
            yield NotebookFinding(
                cell.index, "error", INVALID_SYNTAX, message, "correct it", "", cell.parsed.syntax_error_line
            )


def _check_execution_order(notebook: Notebook) -> Iterator[NotebookFinding]:
    last_count = 0
    for index, cell in enumerate_cells(notebook):
        count = cell.get("execution_count")
        if isinstance(count, int):
            if count < last_count:
                message = f"has execution count {count}, but a cell above it has {last_count}"
                yield NotebookFinding(index, "info", OUT_OF_ORDER, message, "run all cells from the top before saving")
                return
            last_count = count


def _check_stored_errors(notebook: Notebook) -> Iterator[NotebookFinding]:
    for index, cell in enumerate_cells(notebook):
        for output in list_outputs(cell):
            if output.get("output_type") == "error":
                message = f"was saved with an error: {output.get('ename')}"
                yield NotebookFinding(index, "warning", STORED_ERROR, message, "run it again, or clear its output")
                break


def _check_secrets(notebook: Notebook) -> Iterator[NotebookFinding]:
    for index, cell in enumerate_cells(notebook):
        texts_by_location = [
            ("source", get_source(cell)),
            *(("output", _join_output_texts(output)) for output in list_outputs(cell)),
        ]
        for location, text in texts_by_location:
            for secret_kind, pattern in _SECRET_PATTERNS:
                if pattern.search(text[: 1 << 20]):
                    advice = "remove and revoke it; read it from the environment"
                    yield NotebookFinding(
                        index, "error", SECRET_IN_NOTEBOOK, f"has {secret_kind} in its {location}", advice
                    )


def _join_output_texts(output: Any) -> str:
    data = output.get("data") or {}
    texts = [join_text(content) for mime, content in data.items() if str(mime).startswith("text/")]
    return "\n".join([join_text(output.get("text")), join_text(output.get("evalue")), *texts])


def _check_randomness(notebook: Notebook, parsed_notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    """Random outputs, which differ from golden outputs in every run."""
    if any(_SEED_PATTERN.search(cell.source) for cell in parsed_notebook.cells):
        return
    cells = dict(enumerate_cells(notebook))
    for index, tree in parsed_notebook.trees:
        if not list_outputs(cells[index]) or read_marks(cells[index]) & {SKIP, IGNORE}:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := parsed_notebook.names.resolve_name(node.func)).startswith(
                _RANDOM_FUNCTIONS
            ):
                advice = "set a seed, or tag the cell nbval-ignore-output"
                yield NotebookFinding(
                    index, "info", RANDOM_OUTPUT, f"shows random output of {name}()", advice, "", node.lineno
                )
                break


def _check_parameters(notebook: Notebook, parameter_names: Sequence[str]) -> Iterator[NotebookFinding]:
    declared_names = [parameter.name for parameter in read_declared_parameters(notebook)]
    for name in parameter_names:
        if name not in declared_names:
            declared_text = (
                f"it declares {', '.join(declared_names)}" if declared_names else "no cell has the tag parameters"
            )
            yield NotebookFinding(
                WHOLE_NOTEBOOK,
                "warning",
                UNKNOWN_PARAMETER,
                f"has no parameter {name}: {declared_text}",
                "declare it there",
            )
