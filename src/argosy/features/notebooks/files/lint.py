"""Lints a notebook without running it.

In: a notebook from Git. Out: remarks with a rule, a location and advice. Never: prints a secret that it found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.features.notebooks.runner.cells import (
    IGNORE,
    SKIP,
    Notebook,
    marks_of,
    numbered,
    outputs_of,
    source_of,
    text_of,
)
from argosy.features.notebooks.runner.findings import THRESHOLDS, WHOLE, Finding, blocking
from argosy.features.notebooks.runner.order import Validation
from argosy.features.notebooks.runner.parameters import declared
from argosy.features.notebooks.runner.silent_failures import MAGIC, NAN, shown_by_cell
from argosy.features.notebooks.runner.source_rules import SILENT, Reading, found_in

ORDER, PARAMETERS, STORED_ERROR, SECRET, RANDOM, SYNTAX = (
    "out-of-order",
    "unknown-parameter",
    "stored-error",
    "secret-in-notebook",
    "nondeterministic-output",
    "invalid-syntax",
)
RULES: Final = {
    ORDER: "AGY303",
    PARAMETERS: "AGY303",
    SYNTAX: "AGY303",
    STORED_ERROR: "AGY304",
    SECRET: "AGY304",
    RANDOM: "AGY305",
}
SILENT_RULE: Final = "AGY306"  # everything that can fail silently
SURE: Final = frozenset({SILENT, MAGIC, NAN})  # of that rule: failures that are visible, not only possible
_SECRETS: Final = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")),
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})")),
    ("a GitLab token", re.compile(r"\bglpat-[\w-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abprs]-[\w-]{10,}")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{10,2000}\.eyJ[\w-]{10,5000}\.[\w-]{10,}")),
    ("a password in a URL", re.compile(r"\b[a-z][a-z0-9+]{1,12}://[^\s/:@\"'{}]{1,80}:[^\s/@\"'{}$]{4,80}@")),
)
_CHANCE: Final = ("random.", "numpy.random.", "uuid.uuid1", "uuid.uuid4", "secrets.", "torch.rand")
_SEEDS: Final = re.compile(r"\bseed\(|manual_seed|random_state\s*=|default_rng\(\s*\w|RandomState\(\s*\w|Random\(\s*\w")


@dataclass(frozen=True)
class Remark:
    file: str
    finding: Finding

    @property
    def rule(self) -> str:
        return RULES.get(self.finding.category, SILENT_RULE)

    def as_data(self) -> dict[str, Any]:
        return {"file": self.file, "rule": self.rule, "line": self.finding.line, **self.finding.as_wire()}


def lint(file: str, notebook: Notebook, validation: Validation, given: Sequence[str] = ()) -> list[Remark]:
    """`parameter_names`: names of parameters that will be set."""
    reading = Reading.of(notebook)
    found = [
        *_syntax(reading),
        *found_in(reading, validation),
        *_order(notebook),
        *_stored_errors(notebook),
        *_secrets(notebook),
        *_chance(notebook, reading),
        *_parameters(notebook, given),
    ]
    return [Remark(file, each) for each in sorted(found, key=lambda each: (each.cell, each.line))]


def saved_failures(file: str, notebook: Notebook) -> list[Remark]:
    """Failures that the saved outputs show."""
    told = (MAGIC, NAN)
    found = [
        each
        for index, cell in numbered(notebook)
        for each in shown_by_cell(index, cell, None, Validation.of({}))
        if each.category in told
    ]
    return [Remark(file, each) for each in found]


def fails(remarks: Sequence[Remark], level: str) -> list[Remark]:
    assert level in THRESHOLDS
    bad = set(map(id, blocking([each.finding for each in remarks], level)))
    return [each for each in remarks if id(each.finding) in bad]


def _syntax(reading: Reading) -> Iterator[Finding]:
    for cell in reading.cells:
        if cell.parsed.fault:
            message = f"is not valid Python: {cell.parsed.fault}"
            yield Finding(cell.index, "error", SYNTAX, message, "correct it", "", cell.parsed.fault_line)


def _order(notebook: Notebook) -> Iterator[Finding]:
    last = 0
    for index, cell in numbered(notebook):
        count = cell.get("execution_count")
        if isinstance(count, int):
            if count < last:
                message = f"has execution count {count}, but a cell above it has {last}"
                yield Finding(index, "info", ORDER, message, "run all cells from the top before saving")
                return
            last = count


def _stored_errors(notebook: Notebook) -> Iterator[Finding]:
    for index, cell in numbered(notebook):
        for output in outputs_of(cell):
            if output.get("output_type") == "error":
                message = f"was saved with an error: {output.get('ename')}"
                yield Finding(index, "warning", STORED_ERROR, message, "run it again, or clear its output")
                break


def _secrets(notebook: Notebook) -> Iterator[Finding]:
    for index, cell in numbered(notebook):
        places = [("source", source_of(cell)), *(("output", _texts(output)) for output in outputs_of(cell))]
        for place, text in places:
            for what, pattern in _SECRETS:
                if pattern.search(text[: 1 << 20]):
                    advice = "remove and revoke it; read it from the environment"
                    yield Finding(index, "error", SECRET, f"has {what} in its {place}", advice)


def _texts(output: Any) -> str:
    data = output.get("data") or {}
    texts = [text_of(content) for mime, content in data.items() if str(mime).startswith("text/")]
    return "\n".join([text_of(output.get("text")), text_of(output.get("evalue")), *texts])


def _chance(notebook: Notebook, reading: Reading) -> Iterator[Finding]:
    """Random outputs, which differ from golden outputs in every run."""
    if any(_SEEDS.search(cell.source) for cell in reading.cells):
        return
    cells = dict(numbered(notebook))
    for index, tree in reading.trees:
        if not outputs_of(cells[index]) or marks_of(cells[index]) & {SKIP, IGNORE}:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := reading.names.dotted(node.func)).startswith(_CHANCE):
                advice = "set a seed, or tag the cell nbval-ignore-output"
                yield Finding(index, "info", RANDOM, f"shows random output of {name}()", advice, "", node.lineno)
                break


def _parameters(notebook: Notebook, given: Sequence[str]) -> Iterator[Finding]:
    known = [each.name for each in declared(notebook)]
    for name in given:
        if name not in known:
            where = f"it declares {', '.join(known)}" if known else "no cell has the tag parameters"
            yield Finding(WHOLE, "warning", PARAMETERS, f"has no parameter {name}: {where}", "declare it there")
