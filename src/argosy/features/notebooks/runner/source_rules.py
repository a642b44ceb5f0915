"""Source rules: findings in the source of a notebook before it runs.

In: a notebook, and validation settings. Out: findings. Never: runs anything; reports a function only because it returns
nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.features.notebooks.runner.cell_source_and_tags import (
    SKIP,
    Cell,
    Notebook,
    enumerate_cells,
    get_cell_type,
    get_source,
    read_marks,
)
from argosy.features.notebooks.runner.cell_syntax_tree import ParsedCell, is_python_notebook, parse_cell
from argosy.features.notebooks.runner.findings_that_fail_validation import WHOLE_NOTEBOOK, NotebookFinding, Severity
from argosy.features.notebooks.runner.functions_without_return import (
    classify_functions,
    find_used_calls,
    is_used,
    map_parents,
)
from argosy.features.notebooks.runner.imported_and_assigned_names import NotebookNames, collect_names
from argosy.features.notebooks.runner.run_request import ValidationConfig

RISKY_OPERATION, MISSING_ERROR_HANDLING, SILENT_FAILURE, MISSING_ASSERTION, MISSING_EXIT_CODE = (
    "risky-operation",
    "missing-error-handling",
    "silent-failure",
    "missing-assertion",
    "missing-exit-code",
)
_LEVELS_WITH_ASSERTIONS: Final = ("learning", "staging", "production")  # levels that require assertions
_CODE_RUNNERS: Final = ("eval", "exec", "__import__")
_PROGRAMS: Final = ("os.system", "subprocess.run", "subprocess.call", "subprocess.Popen")
_CHECKED_COMMANDS: Final = ("subprocess.check_call", "subprocess.check_output")
_HTTP_LIBRARIES: Final = ("requests.", "httpx.")
_HTTP_METHODS: Final = frozenset(("get", "post", "put", "patch", "delete", "head", "options", "request"))
_STATUS_ATTRIBUTES: Final = frozenset(("raise_for_status", "status_code", "ok", "is_success"))
_FILE_READS: Final = ("pandas.read_", "polars.read_", "numpy.load", "numpy.genfromtxt", "numpy.fromfile", "joblib.load")
_BROAD_EXCEPTIONS: Final = ("Exception", "BaseException", "builtins.Exception")


@dataclass(frozen=True)
class CodeCell:
    index: int
    source: str
    parsed: ParsedCell


@dataclass(frozen=True)
class ParsedNotebook:
    """The code cells that run, parsed once."""

    cells: tuple[CodeCell, ...]

    @classmethod
    def parse(cls, notebook: Notebook) -> ParsedNotebook:
        if not is_python_notebook(notebook):
            return cls(())
        indexed_sources = [(index, get_source(cell)) for index, cell in enumerate_cells(notebook) if _should_run(cell)]
        return cls(tuple(CodeCell(index, source, parse_cell(source)) for index, source in indexed_sources))

    @cached_property
    def trees(self) -> list[tuple[int, ast.Module]]:
        return [(cell.index, cell.parsed.tree) for cell in self.cells if cell.parsed.tree is not None]

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for _, tree in self.trees for child, node in map_parents(tree).items()}

    @cached_property
    def names(self) -> NotebookNames:
        return collect_names(tree for _, tree in self.trees)


def _should_run(cell: Cell) -> bool:
    return get_cell_type(cell) == "code" and SKIP not in read_marks(cell)


def check_notebook_source(notebook: Notebook, validation: ValidationConfig) -> list[NotebookFinding]:
    return check_source(ParsedNotebook.parse(notebook), validation)


def check_source(notebook: ParsedNotebook, validation: ValidationConfig) -> list[NotebookFinding]:
    findings: list[NotebookFinding] = []
    if validation.detect_silent_failures:
        findings += [finding for rule in RULES for finding in rule(notebook)]
        if validation.level in _LEVELS_WITH_ASSERTIONS:
            findings += [*_find_unchecked_file_data(notebook), *_find_missing_assertions(notebook, "info")]
    if validation.verify_assertions:
        findings = [finding for finding in findings if finding.category != MISSING_ASSERTION]
        findings += _find_missing_assertions(notebook, "error")
    if validation.require_exit_codes:
        findings += _find_unchecked_exit_codes(notebook)
    return sorted(findings, key=lambda finding: (finding.cell, finding.line))


# -- the rules: all cells in, findings out ---------------------------------------------------------------------------


def _find_used_none_results(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    functions = {
        name: kind for name, kind in classify_functions(tree for _, tree in notebook.trees).items() if kind != "value"
    }
    for index, tree in notebook.trees:
        for call, name in find_used_calls(tree, functions):
            kind = "never returns a value" if functions[name] == "nothing" else "returns nothing on some paths"
            message = f"{name}() {kind}, but its result is used here"
            advice = f"return a result at the end of {name}(), or raise an error if there is none"
            example = f"def {name}(…):\n    …\n    return result"
            yield NotebookFinding(
                index, "warning", SILENT_FAILURE, message, advice, example, getattr(call, "lineno", 0)
            )


def _find_swallowed_errors(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    example = "try:\n    …\nexcept FileNotFoundError as error:\n    raise SystemExit(f'no data: {error}')"
    for index, tree in notebook.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and (message := _describe_swallowed_errors(node)):
                advice = "catch only the expected exceptions, and re-raise the others"
                yield NotebookFinding(index, "warning", SILENT_FAILURE, message, advice, example, node.lineno)
    for index, call, name in _iterate_calls(notebook):
        if name == "contextlib.suppress" and any(
            notebook.names.resolve_name(argument) in _BROAD_EXCEPTIONS for argument in call.args
        ):
            message = "suppress(Exception) hides every error"
            yield NotebookFinding(
                index, "warning", SILENT_FAILURE, message, "suppress only the expected exceptions", "", call.lineno
            )


def _describe_swallowed_errors(handler: ast.ExceptHandler) -> str:
    raises = any(isinstance(node, ast.Raise) for statement in handler.body for node in ast.walk(statement))
    if handler.type is None:
        return "" if raises else "a bare except hides every error, including typos"
    is_broad = any(isinstance(node, ast.Name) and node.id in _BROAD_EXCEPTIONS for node in ast.walk(handler.type))
    is_idle = all(
        isinstance(statement_node, ast.Pass | ast.Continue)
        or (isinstance(statement_node, ast.Expr) and isinstance(statement_node.value, ast.Constant))
        for statement_node in handler.body
    )
    return f"every error is discarded by except {ast.unparse(handler.type)}" if is_broad and is_idle else ""


def _find_risky_operations(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    defined_names = {
        node.name for _, tree in notebook.trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }
    for index, call, name in _iterate_calls(notebook):
        severity: Severity = "warning"
        if name in _CODE_RUNNERS and name not in defined_names:
            advice = {"eval": "ast.literal_eval() reads plain values", "__import__": "use importlib.import_module()"}
            message, suggestion = f"{name}() runs arbitrary code", advice.get(name, "call a function instead")
        elif name == "os.system" or name.startswith("subprocess."):
            if name.rpartition(".")[2][:1].isupper() and name != "subprocess.Popen":
                continue  # an exception or another class of subprocess
            if not _ignores_exit_code(notebook, call, name):
                severity = "info"
            message = f"{name}() runs a program" + (", and its failure is ignored" if severity == "warning" else "")
            suggestion = "use subprocess.run(…, check=True)" if severity == "warning" else "pin its version"
        else:
            continue
        yield NotebookFinding(index, severity, RISKY_OPERATION, message, suggestion, "", call.lineno)


def _ignores_exit_code(notebook: ParsedNotebook, call: ast.Call, name: str) -> bool:
    if name in _CHECKED_COMMANDS:
        return False
    if any(keyword.arg == "check" and getattr(keyword.value, "value", False) is True for keyword in call.keywords):
        return False
    if name in ("os.system", "subprocess.call"):
        return not is_used(call, notebook.parents)
    parent = notebook.parents.get(call)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("returncode", "check_returncode")
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        return not _reads_attribute(notebook, parent.targets[0].id, {"returncode", "check_returncode"})
    return True


def _reads_attribute(notebook: ParsedNotebook, name: str, attributes: set[str] | frozenset[str]) -> bool:
    """True if one of these attributes of the name is read anywhere in the notebook."""
    attribute_nodes = (node for _, tree in notebook.trees for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return any(
        isinstance(node.value, ast.Name) and node.value.id == name and node.attr in attributes
        for node in attribute_nodes
    )


def _find_unchecked_responses(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    example = "answer = requests.get(url, timeout=30)\nanswer.raise_for_status()"
    for index, call, name in _iterate_calls(notebook):
        if not name.startswith(_HTTP_LIBRARIES) or name.rpartition(".")[2] not in _HTTP_METHODS:
            continue
        parent = notebook.parents.get(call)
        if isinstance(parent, ast.Attribute) and parent.attr in _STATUS_ATTRIBUTES:
            continue
        target = parent.targets[0] if isinstance(parent, ast.Assign) else None
        if isinstance(target, ast.Name) and _reads_attribute(notebook, target.id, _STATUS_ATTRIBUTES):
            continue
        message = f"{name}() returns HTTP error pages as data"
        yield NotebookFinding(
            index, "warning", MISSING_ERROR_HANDLING, message, "call raise_for_status() first", example, call.lineno
        )


def _find_unchecked_file_data(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    """Data that is read from a file and never checked. Read errors raise by themselves, so they need no try."""
    example = "data = pd.read_csv(path)\nassert not data.empty, f'{path} has no rows'"
    for index, call, name in _iterate_calls(notebook):
        parent = notebook.parents.get(call)
        if not name.startswith(_FILE_READS) or not isinstance(parent, ast.Assign):
            continue
        if not isinstance(notebook.parents.get(parent), ast.Module):
            continue
        target_names = [target.id for target in parent.targets if isinstance(target, ast.Name)]
        if target_names and not set(target_names) & notebook.names.checked_names:
            message = f"{target_names[0]} is read by {name}(), but never checked"
            yield NotebookFinding(
                index,
                "info",
                MISSING_ERROR_HANDLING,
                message,
                f"assert something about {target_names[0]}",
                example,
                call.lineno,
            )


def _find_hollow_assertions(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    for index, tree in notebook.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert) and _is_always_true(node.test):
                message = f"assert {ast.unparse(node.test)} is always true"
                yield NotebookFinding(
                    index, "warning", SILENT_FAILURE, message, "remove the parentheses", "", node.lineno
                )


def _is_always_true(test: ast.expr) -> bool:
    return bool(isinstance(test, ast.Tuple) and test.elts) or bool(isinstance(test, ast.Constant) and test.value)


def _find_missing_assertions(notebook: ParsedNotebook, severity: Severity) -> list[NotebookFinding]:
    if not notebook.trees or any(_is_assertion(node) for _, tree in notebook.trees for node in ast.walk(tree)):
        return []
    message = "no cell asserts anything: any result counts as success"
    example = "assert 0.8 < accuracy <= 1, accuracy"
    return [
        NotebookFinding(
            WHOLE_NOTEBOOK, severity, MISSING_ASSERTION, message, "assert a property of the result", example
        )
    ]


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not _is_always_true(node.test)
    if isinstance(node, ast.If):
        return any(isinstance(child, ast.Raise) for child in node.body)
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].lower().startswith("assert")


def _find_unchecked_exit_codes(notebook: ParsedNotebook) -> Iterator[NotebookFinding]:
    advice = "check it: assert _exit_code == 0"
    for cell in notebook.cells:
        for line in cell.parsed.shell_lines if "_exit_code" not in cell.source else ():
            yield NotebookFinding(
                cell.index, "error", MISSING_EXIT_CODE, "the exit code of a command is not checked", advice, "", line
            )
        if cell.parsed.magic in ("bash", "sh", "script") and "--no-raise-error" in cell.parsed.options:
            message = f"%%{cell.parsed.magic} --no-raise-error hides failures"
            yield NotebookFinding(cell.index, "error", MISSING_EXIT_CODE, message, "remove --no-raise-error", "", 1)
    for index, call, name in _iterate_calls(notebook):
        if name in _PROGRAMS and _ignores_exit_code(notebook, call, name):
            message = f"the exit code of {name}() is not checked"
            yield NotebookFinding(
                index, "error", MISSING_EXIT_CODE, message, "use subprocess.run(…, check=True)", "", call.lineno
            )


def _iterate_calls(notebook: ParsedNotebook) -> Iterator[tuple[int, ast.Call, str]]:
    for index, tree in notebook.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := notebook.names.resolve_name(node.func)):
                yield index, node, name


RULES: Final[tuple[Callable[[ParsedNotebook], Iterator[NotebookFinding]], ...]] = (
    _find_used_none_results,
    _find_swallowed_errors,
    _find_risky_operations,
    _find_unchecked_responses,
    _find_hollow_assertions,
)
