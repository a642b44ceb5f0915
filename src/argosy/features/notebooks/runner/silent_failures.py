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

from argosy.features.notebooks.runner import kernel_probe
from argosy.features.notebooks.runner.cells import RAISES, Cell, marks_of, outputs_of, source_of, stream_of, text_of
from argosy.features.notebooks.runner.findings import STDERR, WARNINGS, Finding, Severity
from argosy.features.notebooks.runner.order import Validation
from argosy.features.notebooks.runner.variables import How

NAN, NONE, EMPTY, MAGIC = "nan-detected", "none-detected", "empty-output", "failed-magic"
PROBE: Final = "argosy_probe"
_NUMBERS: Final = ("length", "nan", "inf", "size", "min", "max")
Facts = Mapping[str, Any]
Made = Mapping[str, tuple[How, str]]  # assigned names: how the value was produced, and by which call

_LABELLED_NAN: Final = re.compile(r"[\w)\]%\"'] ?[:=] ?(?:np\.float\d+\()?(nan|NaN|-?inf)\b")
_ONLY_NAN: Final = re.compile(r"\s*(?:np\.float\d+\()?(nan|NaN)\)?\s*")
_SPEAKS_OF_NAN: Final = re.compile(r"nan\b|isna|isnull|notna|missing", re.IGNORECASE)
_FAILED_MAGIC: Final = re.compile(r"^(UsageError: .*|ERROR: (?:Could not|No matching|Invalid|Failed).*)$", re.MULTILINE)
_WARNING: Final = re.compile(r"^.*?\b(\w*Warning): (.*)$", re.MULTILINE)
_GRAVE: Final = (
    "RuntimeWarning",
    "ConvergenceWarning",
    "SettingWithCopyWarning",
    "DataConversionWarning",
    "FitFailedWarning",
)
_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
_ERROR_LINE: Final = re.compile(r"^(?:.*\b(?:ERROR|CRITICAL|FATAL)\b.*)$", re.MULTILINE)
_PROGRESS: Final = re.compile(r"\d+%\||\d+it \[|\[[\d:?]+<[\d:?]+")
_CALM: Final = re.compile(r"^(?:.*\b(?:DEBUG|INFO|NOTICE)\b.*|\s+\S.*|\s*)$")
_COMMAND: Final = re.compile(r"^\s*(?:!(?!!)|%(?:pip|conda|mamba|uv)\b)", re.MULTILINE)
_SHORT: Final = 160


# -- asking the kernel -----------------------------------------------------------------------------------------------


def question(names: Mapping[str, object], *, is_known: bool = False) -> str:
    """Build a Python expression for `user_expressions` of the cell itself: it adds no cell, no count and no name.

    The probe stays in the kernel as a module, because loading it takes longer than calling it; `is_probe_loaded`: it is
    loaded.
    """
    who = f"__import__('sys').modules[{PROBE!r}]" if is_known else _introduced()
    return f"{who}.answer(globals(), {list(names)!r})"


def _introduced() -> str:
    code = inspect.getsource(kernel_probe)
    made = f"__import__('types').ModuleType({PROBE!r})"
    return (
        f"(lambda m: (exec({code!r}, m.__dict__), __import__('sys').modules.__setitem__(m.__name__, m), m)[2])({made})"
    )


def answer(said: str) -> dict[str, Any]:
    """Parse the kernel's reply; empty if it is invalid. A notebook can send any reply."""
    try:
        found = json.loads(ast.literal_eval(said))
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    values = found.get("values")
    exit_code = found.get("exit")
    return {
        "values": {str(name): _facts(each) for name, each in values.items()} if isinstance(values, dict) else {},
        "result": _facts(found["result"]) if found.get("result") is not None else None,
        "exit": exit_code if isinstance(exit_code, int) else None,
    }


def _facts(told: Any) -> dict[str, Any]:
    """Keep the valid facts of an untrusted reply."""
    told = told if isinstance(told, dict) else {}
    found: dict[str, Any] = {name: str(told.get(name) or "") for name in ("type", "module")}
    found |= {name: told[name] for name in _NUMBERS if isinstance(told.get(name), int | float)}
    shape, columns = told.get("shape"), told.get("columns")
    if isinstance(shape, list) and all(isinstance(each, int) for each in shape):
        found["shape"] = shape
    if isinstance(columns, dict):
        found["columns"] = {
            name: pair
            for name, pair in columns.items()
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(each, int) for each in pair)
        }
    return found


# -- checking values -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """Facts known about the notebook when a cell has run."""

    watched: frozenset[str] = frozenset()  # names that the author checks
    own: frozenset[str] = frozenset()  # functions that the notebook defines or imports
    before: Mapping[str, Facts] = field(default_factory=dict)  # facts about names before this cell
    incomplete: frozenset[str] = frozenset()  # columns with missing values in the input data


def values_made(index: int, answered: Facts, made: Made, known: Known) -> Iterator[Finding]:
    for name, facts in (answered.get("values") or {}).items():
        how, called = made.get(name, ("other", ""))
        if how == "literal" or name in known.watched:
            continue
        before = known.before.get(name) or {}
        if facts.get("type") == "NoneType":
            had_value = bool(before) and before.get("type") != "NoneType"
            if how == "method" or called in known.own or (had_value and how in ("function", "read")):
                yield _none(index, name, called)
        elif facts.get("type") in ("DataFrame", "Series") and (facts.get("shape") or [1])[0] == 0:
            if how != "made-empty":
                yield _empty(index, name, facts)
        elif (facts.get("nan") or facts.get("inf")) and not _is_old(facts, before):
            is_given = how == "read" or bool(facts.get("columns") and known.incomplete >= set(facts["columns"]))
            severity: Severity = "info" if is_given else "warning"
            yield Finding(index, severity, NAN, _missing(name, facts), *_cleaning(name, facts))


def _is_old(facts: Facts, before: Facts) -> bool:
    """True if the same columns had missing values before this cell."""
    old, new = before.get("columns") or {}, facts.get("columns") or {}
    return bool(new) and facts.get("type") != "dict" and all(column in old for column in new)


def _empty(index: int, name: str, facts: Facts) -> Finding:
    message = f"{name} is an empty {facts['type']} ({' x '.join(map(str, facts['shape']))})"
    advice = f"find out why it is empty: assert len({name})"
    return Finding(index, "warning", EMPTY, message, advice, f"assert len({name}), 'no rows left'")


def _none(index: int, name: str, called: str) -> Finding:
    message = f"{name} is None: {called}() returned nothing"
    advice = f"do not assign the result, or return a value from {called}()"
    return Finding(index, "warning", NONE, message, advice, f"assert {name} is not None")


def _missing(name: str, facts: Facts) -> str:
    columns = facts.get("columns") or {}
    if columns:
        told = [f'"{column}" has {bad} NaN of {rows}' for column, (bad, rows) in columns.items()]
        if facts.get("type") == "dict":
            return f"{name} has no number for {', '.join(list(columns)[:5])}"
        return f"{name}: column " + ", column ".join(told[:5]) + (" and more" if len(told) > 5 else "")
    what = "NaN" if facts.get("nan") else "infinite"
    number, size = facts.get("nan") or facts.get("inf"), facts.get("size")
    return f"{name} is {what}" if size == 1 else f"{name} has {number} {what} of {size}"


def _cleaning(name: str, facts: Facts) -> tuple[str, str]:
    if facts.get("shape"):
        return f"find out where they come from, or drop them: {name}.dropna()", f"assert not {name}.isna().any().any()"
    return "find out where it comes from: a division by zero, an empty mean", f"assert math.isfinite({name})"


# -- checking outputs ------------------------------------------------------------------------------------------------


def shown_by_cell(index: int, cell: Cell, exit_code: int | None, validation: Validation) -> Iterator[Finding]:
    errors = stream_of(cell, "stderr")
    if validation.detect_silent_failures and RAISES not in marks_of(cell):
        yield from _failed_magics(index, cell, errors, exit_code)
        yield from _nan_in_text(index, cell)
    yield from _warnings(index, errors, validation)
    yield from _stderr(index, errors, validation)


def _failed_magics(index: int, cell: Cell, errors: str, exit_code: int | None) -> Iterator[Finding]:
    if found := _FAILED_MAGIC.search(errors):
        yield Finding(index, "warning", MAGIC, _short(found[1]), "correct the magic, or remove it")
    elif exit_code and gives_commands(source_of(cell)):
        message = f"a command of the cell exited with code {exit_code}"
        advice = "fix the command, or ignore its failure: … || true"
        yield Finding(index, "warning", MAGIC, message, advice, "assert _exit_code == 0")


def gives_commands(source: str) -> bool:
    """True if the cell runs shell commands and does not check their exit code."""
    return "_exit_code" not in source and bool(_COMMAND.search(source))


def _nan_in_text(index: int, cell: Cell) -> Iterator[Finding]:
    if _SPEAKS_OF_NAN.search(source_of(cell)):
        return
    results = [each for each in outputs_of(cell) if each.get("output_type") == "execute_result"]
    texts = [stream_of(cell, "stdout"), *(text_of((each.get("data") or {}).get("text/plain")) for each in results)]
    for text in texts:
        line = next((line for line in text.splitlines()[:5000] if _LABELLED_NAN.search(line[:1000])), "")
        if line or _ONLY_NAN.fullmatch(text[:100]):
            message = f"shows {_short(line.strip() or text.strip())}"
            yield Finding(
                index, "warning", NAN, message, "find out where it comes from: a division by zero, an empty mean"
            )
            return


def _warnings(index: int, errors: str, validation: Validation) -> Iterator[Finding]:
    if not (validation.detect_silent_failures or validation.fail_on_warnings or validation.strict):
        return
    seen: set[str] = set()
    for name, text in _WARNING.findall(errors[: 1 << 20]):
        if name not in seen:
            seen.add(name)
            severity: Severity = "warning" if name in _GRAVE else "info"
            severity = "error" if validation.fail_on_warnings else severity
            yield Finding(index, severity, WARNINGS, _short(f"{name}: {text}"), "fix the cause of the warning")


def _stderr(index: int, errors: str, validation: Validation) -> Iterator[Finding]:
    if validation.fail_on_stderr and errors.strip():
        yield Finding(index, "error", STDERR, f"wrote to standard error: {_first_line(errors)}")
    elif not validation.detect_silent_failures or _FAILED_MAGIC.search(errors):
        return  # not requested, or already reported
    elif _TRACEBACK.search(errors):
        message = "a traceback was written to standard error, but the cell continued"
        yield Finding(index, "warning", STDERR, message, "raise the error: a thread or a callback hides it")
    elif found := _ERROR_LINE.search(errors):
        yield Finding(
            index,
            "warning",
            STDERR,
            f"logs an error: {_short(found[0].strip())}",
            "raise it, or log it at a lower level",
        )
    elif line := _telling(errors):
        yield Finding(index, "info", STDERR, f"wrote to standard error: {_short(line)}")


def _telling(errors: str) -> str:
    """The first line that is not a progress bar, an informational log line or a reported warning."""
    for line in errors.replace("\r", "\n").split("\n")[:5000]:
        line = line[:1000]
        if not (_CALM.match(line) or _PROGRESS.search(line) or _WARNING.match(line)):
            return line.strip()
    return ""


def _first_line(text: str) -> str:
    return _short(next((line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()), ""))


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else text[:_SHORT] + "…"
