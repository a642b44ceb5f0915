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

from argosy.features.notebooks.runner.cells import SKIP, Cell, Notebook, marks_of, numbered, source_of, type_of
from argosy.features.notebooks.runner.findings import WHOLE, Finding, Severity
from argosy.features.notebooks.runner.functions import defined, is_used, parents_of, uses
from argosy.features.notebooks.runner.order import Validation
from argosy.features.notebooks.runner.python_source import Parsed, is_python, parsed
from argosy.features.notebooks.runner.variables import Names, names_of

RISKY, UNHANDLED, SILENT, UNASSERTED, EXIT_CODE = (
    "risky-operation",
    "missing-error-handling",
    "silent-failure",
    "missing-assertion",
    "missing-exit-code",
)
_ASKED: Final = ("learning", "staging", "production")  # levels that require assertions
_CODE_RUNNERS: Final = ("eval", "exec", "__import__")
_PROGRAMS: Final = ("os.system", "subprocess.run", "subprocess.call", "subprocess.Popen")
_CHECKED_COMMANDS: Final = ("subprocess.check_call", "subprocess.check_output")
_WEB: Final = ("requests.", "httpx.")
_WEB_VERBS: Final = frozenset(("get", "post", "put", "patch", "delete", "head", "options", "request"))
_STATUS: Final = frozenset(("raise_for_status", "status_code", "ok", "is_success"))
_FILE_READS: Final = ("pandas.read_", "polars.read_", "numpy.load", "numpy.genfromtxt", "numpy.fromfile", "joblib.load")
_BROAD: Final = ("Exception", "BaseException", "builtins.Exception")


@dataclass(frozen=True)
class CodeCell:
    index: int
    source: str
    parsed: Parsed


@dataclass(frozen=True)
class Reading:
    """The code cells that run, parsed once."""

    cells: tuple[CodeCell, ...]

    @classmethod
    def of(cls, notebook: Notebook) -> Reading:
        if not is_python(notebook):
            return cls(())
        kept = [(index, source_of(cell)) for index, cell in numbered(notebook) if _runs(cell)]
        return cls(tuple(CodeCell(index, source, parsed(source)) for index, source in kept))

    @cached_property
    def trees(self) -> list[tuple[int, ast.Module]]:
        return [(cell.index, cell.parsed.tree) for cell in self.cells if cell.parsed.tree is not None]

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for _, tree in self.trees for child, node in parents_of(tree).items()}

    @cached_property
    def names(self) -> Names:
        return names_of(tree for _, tree in self.trees)


def _runs(cell: Cell) -> bool:
    return type_of(cell) == "code" and SKIP not in marks_of(cell)


def read_before(notebook: Notebook, validation: Validation) -> list[Finding]:
    return found_in(Reading.of(notebook), validation)


def found_in(reading: Reading, validation: Validation) -> list[Finding]:
    found: list[Finding] = []
    if validation.detect_silent_failures:
        found += [each for rule in RULES for each in rule(reading)]
        if validation.level in _ASKED:
            found += [*_unchecked_files(reading), *_unasserted(reading, "info")]
    if validation.verify_assertions:
        found = [each for each in found if each.category != UNASSERTED]
        found += _unasserted(reading, "error")
    if validation.require_exit_codes:
        found += _exit_codes(reading)
    return sorted(found, key=lambda each: (each.cell, each.line))


# -- the rules: all cells in, findings out ---------------------------------------------------------------------------


def _results_of_nothing(reading: Reading) -> Iterator[Finding]:
    given = {name: what for name, what in defined(tree for _, tree in reading.trees).items() if what != "value"}
    for index, tree in reading.trees:
        for call, name in uses(tree, given):
            what = "never returns a value" if given[name] == "nothing" else "returns nothing on some paths"
            message = f"{name}() {what}, but its result is used here"
            advice = f"return a result at the end of {name}(), or raise an error if there is none"
            example = f"def {name}(…):\n    …\n    return result"
            yield Finding(index, "warning", SILENT, message, advice, example, getattr(call, "lineno", 0))


def _swallowed_errors(reading: Reading) -> Iterator[Finding]:
    example = "try:\n    …\nexcept FileNotFoundError as error:\n    raise SystemExit(f'no data: {error}')"
    for index, tree in reading.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and (what := _swallows(node)):
                advice = "catch only the expected exceptions, and re-raise the others"
                yield Finding(index, "warning", SILENT, what, advice, example, node.lineno)
    for index, call, name in _calls(reading):
        if name == "contextlib.suppress" and any(reading.names.dotted(each) in _BROAD for each in call.args):
            what = "suppress(Exception) hides every error"
            yield Finding(index, "warning", SILENT, what, "suppress only the expected exceptions", "", call.lineno)


def _swallows(handler: ast.ExceptHandler) -> str:
    raises = any(isinstance(node, ast.Raise) for statement in handler.body for node in ast.walk(statement))
    if handler.type is None:
        return "" if raises else "a bare except hides every error, including typos"
    broad = any(isinstance(node, ast.Name) and node.id in _BROAD for node in ast.walk(handler.type))
    is_idle = all(
        isinstance(each, ast.Pass | ast.Continue)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in handler.body
    )
    return f"every error is discarded by except {ast.unparse(handler.type)}" if broad and is_idle else ""


def _risky_operations(reading: Reading) -> Iterator[Finding]:
    own = {node.name for _, tree in reading.trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for index, call, name in _calls(reading):
        severity: Severity = "warning"
        if name in _CODE_RUNNERS and name not in own:
            advice = {"eval": "ast.literal_eval() reads plain values", "__import__": "use importlib.import_module()"}
            message, suggestion = f"{name}() runs arbitrary code", advice.get(name, "call a function instead")
        elif name == "os.system" or name.startswith("subprocess."):
            if name.rpartition(".")[2][:1].isupper() and name != "subprocess.Popen":
                continue  # an exception or another class of subprocess
            if not _ignores_exit_code(reading, call, name):
                severity = "info"
            message = f"{name}() runs a program" + (", and its failure is ignored" if severity == "warning" else "")
            suggestion = "use subprocess.run(…, check=True)" if severity == "warning" else "pin its version"
        else:
            continue
        yield Finding(index, severity, RISKY, message, suggestion, "", call.lineno)


def _ignores_exit_code(reading: Reading, call: ast.Call, name: str) -> bool:
    if name in _CHECKED_COMMANDS:
        return False
    if any(each.arg == "check" and getattr(each.value, "value", False) is True for each in call.keywords):
        return False
    if name in ("os.system", "subprocess.call"):
        return not is_used(call, reading.parents)
    parent = reading.parents.get(call)
    if isinstance(parent, ast.Attribute):
        return parent.attr not in ("returncode", "check_returncode")
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        return not _asks(reading, parent.targets[0].id, {"returncode", "check_returncode"})
    return True


def _asks(reading: Reading, name: str, attributes: set[str] | frozenset[str]) -> bool:
    """True if one of these attributes of the name is read anywhere in the notebook."""
    found = (node for _, tree in reading.trees for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return any(isinstance(node.value, ast.Name) and node.value.id == name and node.attr in attributes for node in found)


def _unchecked_answers(reading: Reading) -> Iterator[Finding]:
    example = "answer = requests.get(url, timeout=30)\nanswer.raise_for_status()"
    for index, call, name in _calls(reading):
        if not name.startswith(_WEB) or name.rpartition(".")[2] not in _WEB_VERBS:
            continue
        parent = reading.parents.get(call)
        if isinstance(parent, ast.Attribute) and parent.attr in _STATUS:
            continue
        kept = parent.targets[0] if isinstance(parent, ast.Assign) else None
        if isinstance(kept, ast.Name) and _asks(reading, kept.id, _STATUS):
            continue
        message = f"{name}() returns HTTP error pages as data"
        yield Finding(index, "warning", UNHANDLED, message, "call raise_for_status() first", example, call.lineno)


def _unchecked_files(reading: Reading) -> Iterator[Finding]:
    """Data that is read from a file and never checked. Read errors raise by themselves, so they need no try."""
    example = "data = pd.read_csv(path)\nassert not data.empty, f'{path} has no rows'"
    for index, call, name in _calls(reading):
        parent = reading.parents.get(call)
        if not name.startswith(_FILE_READS) or not isinstance(parent, ast.Assign):
            continue
        if not isinstance(reading.parents.get(parent), ast.Module):
            continue
        kept = [each.id for each in parent.targets if isinstance(each, ast.Name)]
        if kept and not set(kept) & reading.names.watched:
            message = f"{kept[0]} is read by {name}(), but never checked"
            yield Finding(index, "info", UNHANDLED, message, f"assert something about {kept[0]}", example, call.lineno)


def _hollow_assertions(reading: Reading) -> Iterator[Finding]:
    for index, tree in reading.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert) and _is_hollow(node.test):
                message = f"assert {ast.unparse(node.test)} is always true"
                yield Finding(index, "warning", SILENT, message, "remove the parentheses", "", node.lineno)


def _is_hollow(test: ast.expr) -> bool:
    return bool(isinstance(test, ast.Tuple) and test.elts) or bool(isinstance(test, ast.Constant) and test.value)


def _unasserted(reading: Reading, severity: Severity) -> list[Finding]:
    if not reading.trees or any(_asserts(node) for _, tree in reading.trees for node in ast.walk(tree)):
        return []
    message = "no cell asserts anything: any result counts as success"
    example = "assert 0.8 < accuracy <= 1, accuracy"
    return [Finding(WHOLE, severity, UNASSERTED, message, "assert a property of the result", example)]


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not _is_hollow(node.test)
    if isinstance(node, ast.If):
        return any(isinstance(each, ast.Raise) for each in node.body)
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].lower().startswith("assert")


def _exit_codes(reading: Reading) -> Iterator[Finding]:
    advice = "check it: assert _exit_code == 0"
    for cell in reading.cells:
        for line in cell.parsed.shell if "_exit_code" not in cell.source else ():
            yield Finding(cell.index, "error", EXIT_CODE, "the exit code of a command is not checked", advice, "", line)
        if cell.parsed.magic in ("bash", "sh", "script") and "--no-raise-error" in cell.parsed.options:
            message = f"%%{cell.parsed.magic} --no-raise-error hides failures"
            yield Finding(cell.index, "error", EXIT_CODE, message, "remove --no-raise-error", "", 1)
    for index, call, name in _calls(reading):
        if name in _PROGRAMS and _ignores_exit_code(reading, call, name):
            message = f"the exit code of {name}() is not checked"
            yield Finding(index, "error", EXIT_CODE, message, "use subprocess.run(…, check=True)", "", call.lineno)


def _calls(reading: Reading) -> Iterator[tuple[int, ast.Call, str]]:
    for index, tree in reading.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (name := reading.names.dotted(node.func)):
                yield index, node, name


RULES: Final[tuple[Callable[[Reading], Iterator[Finding]], ...]] = (
    _results_of_nothing,
    _swallowed_errors,
    _risky_operations,
    _unchecked_answers,
    _hollow_assertions,
)
