"""Detects failures of a cell that raised no exception.

In: a cell that ran, and the kernel's facts about the values that it assigned. Out: findings. Never: reports values that
the author wrote on purpose (`best = None`), checks (`if data is None`), or reads from outside and then cleans.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.notebooks.runner import assigned_value_probe
from argosy.features.notebooks.runner.cell_source_and_tags import (
    RAISES,
    Cell,
    get_source,
    join_text,
    list_outputs,
    read_marks,
    read_stream,
)
from argosy.features.notebooks.runner.findings_that_fail_validation import STDERR, WARNINGS, NotebookFinding, Severity
from argosy.features.notebooks.runner.imported_and_assigned_names import ValueOrigin
from argosy.features.notebooks.runner.run_request import ValidationConfig

NAN, NONE, EMPTY, MAGIC = "nan-detected", "none-detected", "empty-output", "failed-magic"
PROBE_MODULE: Final = "argosy_probe"
_NUMBERS: Final = ("length", "nan", "inf", "size", "min", "max")
Facts = Mapping[str, Any]
Assignments = Mapping[str, tuple[ValueOrigin, str]]  # assigned names: how the value was produced, and by which call

_LABELLED_NAN: Final = re.compile(r"[\w)\]%\"'] ?[:=] ?(?:np\.float\d+\()?(nan|NaN|-?inf)\b")
_ONLY_NAN: Final = re.compile(r"\s*(?:np\.float\d+\()?(nan|NaN)\)?\s*")
_MENTIONS_NAN: Final = re.compile(r"nan\b|isna|isnull|notna|missing", re.IGNORECASE)
_FAILED_MAGIC: Final = re.compile(r"^(UsageError: .*|ERROR: (?:Could not|No matching|Invalid|Failed).*)$", re.MULTILINE)
_WARNING: Final = re.compile(r"^.*?\b(\w*Warning): (.*)$", re.MULTILINE)
_SERIOUS_WARNINGS: Final = (
    "RuntimeWarning",
    "ConvergenceWarning",
    "SettingWithCopyWarning",
    "DataConversionWarning",
    "FitFailedWarning",
)
_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
_ERROR_LINE: Final = re.compile(r"^(?:.*\b(?:ERROR|CRITICAL|FATAL)\b.*)$", re.MULTILINE)
_PROGRESS: Final = re.compile(r"\d+%\||\d+it \[|\[[\d:?]+<[\d:?]+")
_INFORMATIONAL_LINE: Final = re.compile(r"^(?:.*\b(?:DEBUG|INFO|NOTICE)\b.*|\s+\S.*|\s*)$")
_COMMAND: Final = re.compile(r"^\s*(?:!(?!!)|%(?:pip|conda|mamba|uv)\b)", re.MULTILINE)
_MAX_LINE_CHARACTERS: Final = 160


# -- asking the kernel -----------------------------------------------------------------------------------------------


def build_question(names: Mapping[str, object], *, is_probe_loaded: bool = False) -> str:
    """Build a Python expression for `user_expressions` of the cell itself: it adds no cell, no count and no name.

    The probe stays in the kernel as a module, because loading it takes longer than calling it; `is_probe_loaded`: it is
    loaded.
    """
    probe = f"__import__('sys').modules[{PROBE_MODULE!r}]" if is_probe_loaded else _build_probe_loader()
    return f"{probe}.answer(globals(), {list(names)!r})"


def _build_probe_loader() -> str:
    code = inspect.getsource(assigned_value_probe)
    new_module = f"__import__('types').ModuleType({PROBE_MODULE!r})"
    return (
        f"(lambda m: (exec({code!r}, m.__dict__), __import__('sys').modules.__setitem__(m.__name__, m), "
        f"m)[2])({new_module})"
    )


def read_answer(reply: str) -> dict[str, Any]:
    """Parse the kernel's reply; empty if it is invalid. A notebook can send any reply."""
    try:
        reply_data = json.loads(ast.literal_eval(reply))
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(reply_data, dict):
        return {}
    values = reply_data.get("values")
    exit_code = reply_data.get("exit")
    return {
        "values": {str(name): _read_facts(value) for name, value in values.items()} if isinstance(values, dict) else {},
        "result": _read_facts(reply_data["result"]) if reply_data.get("result") is not None else None,
        "exit": exit_code if isinstance(exit_code, int) else None,
    }


def _read_facts(value: Any) -> dict[str, Any]:
    """Keep the valid facts of an untrusted reply."""
    value = value if isinstance(value, dict) else {}
    facts: dict[str, Any] = {name: str(value.get(name) or "") for name in ("type", "module")}
    facts |= {name: value[name] for name in _NUMBERS if isinstance(value.get(name), int | float)}
    shape, columns = value.get("shape"), value.get("columns")
    if isinstance(shape, list) and all(isinstance(number, int) for number in shape):
        facts["shape"] = shape
    if isinstance(columns, dict):
        facts["columns"] = {
            name: pair
            for name, pair in columns.items()
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(number, int) for number in pair)
        }
    return facts


# -- checking values -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NotebookContext:
    """Facts known about the notebook when a cell has run."""

    checked_names: frozenset[str] = frozenset()  # names that the author checks
    notebook_functions: frozenset[str] = frozenset()  # functions that the notebook defines or imports
    previous_values: Mapping[str, Facts] = field(default_factory=dict)  # facts about names before this cell
    incomplete_columns: frozenset[str] = frozenset()  # columns with missing values in the input data


def check_values(
    index: int, answer: Facts, assignments: Assignments, context: NotebookContext
) -> Iterator[NotebookFinding]:
    for name, facts in (answer.get("values") or {}).items():
        origin, call = assignments.get(name, ("other", ""))
        if origin == "literal" or name in context.checked_names:
            continue
        previous = context.previous_values.get(name) or {}
        if facts.get("type") == "NoneType":
            had_value = bool(previous) and previous.get("type") != "NoneType"
            if (
                origin == "method"
                or call in context.notebook_functions
                or (had_value and origin in ("function", "read"))
            ):
                yield _build_none_finding(index, name, call)
        elif facts.get("type") in ("DataFrame", "Series") and (facts.get("shape") or [1])[0] == 0:
            if origin != "made-empty":
                yield _build_empty_finding(index, name, facts)
        elif (facts.get("nan") or facts.get("inf")) and not _was_incomplete_before(facts, previous):
            is_from_input = origin == "read" or bool(
                facts.get("columns") and context.incomplete_columns >= set(facts["columns"])
            )
            severity: Severity = "info" if is_from_input else "warning"
            yield NotebookFinding(
                index, severity, NAN, _describe_missing_values(name, facts), *_suggest_cleanup(name, facts)
            )


def _was_incomplete_before(facts: Facts, previous: Facts) -> bool:
    """True if the same columns had missing values before this cell."""
    old_columns, new_columns = previous.get("columns") or {}, facts.get("columns") or {}
    return bool(new_columns) and facts.get("type") != "dict" and all(column in old_columns for column in new_columns)


def _build_empty_finding(index: int, name: str, facts: Facts) -> NotebookFinding:
    message = f"{name} is an empty {facts['type']} ({' x '.join(map(str, facts['shape']))})"
    advice = f"find out why it is empty: assert len({name})"
    return NotebookFinding(index, "warning", EMPTY, message, advice, f"assert len({name}), 'no rows left'")


def _build_none_finding(index: int, name: str, call: str) -> NotebookFinding:
    message = f"{name} is None: {call}() returned nothing"
    advice = f"do not assign the result, or return a value from {call}()"
    return NotebookFinding(index, "warning", NONE, message, advice, f"assert {name} is not None")


def _describe_missing_values(name: str, facts: Facts) -> str:
    columns = facts.get("columns") or {}
    if columns:
        column_texts = [f'"{column}" has {nan_count} NaN of {rows}' for column, (nan_count, rows) in columns.items()]
        if facts.get("type") == "dict":
            return f"{name} has no number for {', '.join(list(columns)[:5])}"
        return f"{name}: column " + ", column ".join(column_texts[:5]) + (" and more" if len(column_texts) > 5 else "")
    value_text = "NaN" if facts.get("nan") else "infinite"
    bad_count, size = facts.get("nan") or facts.get("inf"), facts.get("size")
    return f"{name} is {value_text}" if size == 1 else f"{name} has {bad_count} {value_text} of {size}"


def _suggest_cleanup(name: str, facts: Facts) -> tuple[str, str]:
    if facts.get("shape"):
        return f"find out where they come from, or drop them: {name}.dropna()", f"assert not {name}.isna().any().any()"
    return "find out where it comes from: a division by zero, an empty mean", f"assert math.isfinite({name})"


# -- checking outputs ------------------------------------------------------------------------------------------------


def check_cell_outputs(
    index: int, cell: Cell, exit_code: int | None, validation: ValidationConfig
) -> Iterator[NotebookFinding]:
    stderr = read_stream(cell, "stderr")
    if validation.detect_silent_failures and RAISES not in read_marks(cell):
        yield from _check_magics(index, cell, stderr, exit_code)
        yield from _check_nan_in_text(index, cell)
    yield from _check_warnings(index, stderr, validation)
    yield from _check_stderr(index, stderr, validation)


def _check_magics(index: int, cell: Cell, stderr: str, exit_code: int | None) -> Iterator[NotebookFinding]:
    if match := _FAILED_MAGIC.search(stderr):
        yield NotebookFinding(index, "warning", MAGIC, _truncate(match[1]), "correct the magic, or remove it")
    elif exit_code and has_unchecked_commands(get_source(cell)):
        message = f"a command of the cell exited with code {exit_code}"
        advice = "fix the command, or ignore its failure: … || true"
        yield NotebookFinding(index, "warning", MAGIC, message, advice, "assert _exit_code == 0")


def has_unchecked_commands(source: str) -> bool:
    """True if the cell runs shell commands and does not check their exit code."""
    return "_exit_code" not in source and bool(_COMMAND.search(source))


def _check_nan_in_text(index: int, cell: Cell) -> Iterator[NotebookFinding]:
    if _MENTIONS_NAN.search(get_source(cell)):
        return
    results = [output for output in list_outputs(cell) if output.get("output_type") == "execute_result"]
    texts = [
        read_stream(cell, "stdout"),
        *(join_text((output.get("data") or {}).get("text/plain")) for output in results),
    ]
    for text in texts:
        line = next((line for line in text.splitlines()[:5000] if _LABELLED_NAN.search(line[:1000])), "")
        if line or _ONLY_NAN.fullmatch(text[:100]):
            message = f"shows {_truncate(line.strip() or text.strip())}"
            yield NotebookFinding(
                index, "warning", NAN, message, "find out where it comes from: a division by zero, an empty mean"
            )
            return


def _check_warnings(index: int, stderr: str, validation: ValidationConfig) -> Iterator[NotebookFinding]:
    if not (validation.detect_silent_failures or validation.fail_on_warnings or validation.strict):
        return
    seen_names: set[str] = set()
    for name, text in _WARNING.findall(stderr[: 1 << 20]):
        if name not in seen_names:
            seen_names.add(name)
            severity: Severity = "warning" if name in _SERIOUS_WARNINGS else "info"
            severity = "error" if validation.fail_on_warnings else severity
            yield NotebookFinding(
                index, severity, WARNINGS, _truncate(f"{name}: {text}"), "fix the cause of the warning"
            )


def _check_stderr(index: int, stderr: str, validation: ValidationConfig) -> Iterator[NotebookFinding]:
    if validation.fail_on_stderr and stderr.strip():
        yield NotebookFinding(index, "error", STDERR, f"wrote to standard error: {_first_line(stderr)}")
    elif not validation.detect_silent_failures or _FAILED_MAGIC.search(stderr):
        return  # not requested, or already reported
    elif _TRACEBACK.search(stderr):
        message = "a traceback was written to standard error, but the cell continued"
        yield NotebookFinding(index, "warning", STDERR, message, "raise the error: a thread or a callback hides it")
    elif match := _ERROR_LINE.search(stderr):
        yield NotebookFinding(
            index,
            "warning",
            STDERR,
            f"logs an error: {_truncate(match[0].strip())}",
            "raise it, or log it at a lower level",
        )
    elif line := _find_unexpected_line(stderr):
        yield NotebookFinding(index, "info", STDERR, f"wrote to standard error: {_truncate(line)}")


def _find_unexpected_line(stderr: str) -> str:
    """The first line that is not a progress bar, an informational log line or a reported warning."""
    for line in stderr.replace("\r", "\n").split("\n")[:5000]:
        line = line[:1000]
        if not (_INFORMATIONAL_LINE.match(line) or _PROGRESS.search(line) or _WARNING.match(line)):
            return line.strip()
    return ""


def _first_line(text: str) -> str:
    return _truncate(next((line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()), ""))


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_LINE_CHARACTERS else text[:_MAX_LINE_CHARACTERS] + "…"
