"""Run request: the input of the runner as plain values and JSON.

In: JSON, whose blocks `comparison` and `validation` are those of the job spec. Out: frozen dataclasses with every
default filled in. Never: opens a file that the request names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

STDOUT: Final = "-"  # instead of a path: write events, results and the executed notebook to standard output
MOST_CELL_BYTES, MOST_OUTPUT_BYTES = 1 << 20, 10 << 20
SECONDS: Final = 1800.0
LEVELS: Final = ("learning", "development", "staging", "production")
STRATEGIES: Final = ("exact", "normalized")


class OrderError(ValueError):
    """The run request or a file that it names is invalid; the message says which, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Settings of the golden comparison: `spec.comparisonConfig`."""

    strategy: str = "normalized"
    tolerance: float = 0.0001
    ignore_timestamps: bool = True
    ignore_execution_count: bool = True
    timestamp_patterns: tuple[str, ...] = ()
    ignore_output_types: tuple[str, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Comparison:
        return cls(
            strategy=_one_of(STRATEGIES, written, "strategy", "normalized"),
            tolerance=_number(written, "floatingPointTolerance", 0.0001),
            ignore_timestamps=_flag(written, "ignoreTimestamps", True),
            ignore_execution_count=_flag(written, "ignoreExecutionCount", True),
            timestamp_patterns=_texts(written, "customTimestampPatterns"),
            ignore_output_types=_texts(written, "ignoreOutputTypes"),
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected output of a cell: one entry of `spec.validationConfig.expectedOutputs`."""

    cell: int
    type: str = ""
    shape: str = ""  # "rows,cols"; -1 matches any number
    least: float | None = None
    most: float | None = None
    not_empty: bool = False

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Expected:
        return cls(
            cell=int(_number(written, "cell", 0)),
            type=str(written.get("type") or ""),
            shape=str(written.get("shape") or ""),
            least=None if written.get("minValue") in (None, "") else _number(written, "minValue", 0),
            most=None if written.get("maxValue") in (None, "") else _number(written, "maxValue", 0),
            not_empty=_flag(written, "notEmpty", False),
        )


@dataclass(frozen=True, slots=True)
class Validation:
    """Validation settings: `spec.validationConfig`."""

    level: str = "development"
    strict: bool = False
    fail_on_stderr: bool = False
    fail_on_warnings: bool = False
    detect_silent_failures: bool = True
    require_exit_codes: bool = False
    check_output_types: bool = False
    verify_assertions: bool = False
    educational: bool = False
    expected: tuple[Expected, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Validation:
        level = _one_of(LEVELS, written, "level", "development")
        return cls(
            level=level,
            strict=_flag(written, "strictMode", False),
            fail_on_stderr=_flag(written, "failOnStderr", False),
            fail_on_warnings=_flag(written, "failOnWarnings", False),
            detect_silent_failures=_flag(written, "detectSilentFailures", True),
            require_exit_codes=_flag(written, "requireExplicitExitCodes", False),
            check_output_types=_flag(written, "checkOutputTypes", False),
            verify_assertions=_flag(written, "verifyAssertions", False),
            educational=_flag(written, "educationalMode", False) or level == "learning",
            expected=tuple(Expected.of(each) for each in written.get("expectedOutputs") or ()),
        )


@dataclass(frozen=True, slots=True)
class Order:
    """Request for one run. Paths are as the runner sees them; `-` for events, results or output is standard output."""

    notebook: str
    output: str = ""  # path of the executed notebook; "": it is not written
    results: str = ""
    events: str = ""
    folder: str = ""  # working folder of the cells; "": the folder of the notebook
    named: str = ""  # name of the notebook in the results; "": its path
    parameters: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # for the kernel only, added to the runner's own
    timeout_seconds: float = SECONDS
    cell_timeout_seconds: float = 0.0  # 0: only the timeout of the whole notebook applies
    kernel: str = ""  # "": the interpreter that runs the runner
    golden: str = ""
    comparison: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    most_cell_bytes: int = MOST_CELL_BYTES
    most_output_bytes: int = MOST_OUTPUT_BYTES
    keep_interrupted: bool = False  # an interrupted run still writes results and the notebook as far as it ran

    def dump(self) -> str:
        """The request as JSON, without values that equal the default."""
        written: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if value != _DEFAULTS.get(name):
                written[name] = dict(value) if isinstance(value, Mapping) else value
        return json.dumps(written, ensure_ascii=False)

    @classmethod
    def load(cls, text: str | bytes) -> Order:
        """Raises RunRequestError if the JSON or one of its values is invalid."""
        try:
            written = json.loads(text)
        except ValueError as error:
            raise OrderError(f"run request: is not JSON ({error}); create it again") from None
        if not isinstance(written, dict) or not isinstance(written.get("notebook"), str) or not written["notebook"]:
            raise OrderError("run request: names no notebook; set the path of an .ipynb file")
        if unknown := sorted(set(written) - set(cls.__slots__)):
            raise OrderError(f"run request: unknown field {unknown[0]}; remove it")
        for name, usual in _DEFAULTS.items():
            if name in written and not _fits(written[name], usual):
                raise OrderError(f"run request: {name} has the wrong type; use a value like {usual!r}, or omit it")
        found = cls(**written)
        found.compares(), found.validates()
        return found

    def compares(self) -> Comparison:
        return Comparison.of(self.comparison)

    def validates(self) -> Validation:
        return Validation.of(self.validation)


_PLAIN = Order("")
_DEFAULTS: Final = {name: getattr(_PLAIN, name) for name in Order.__slots__ if name != "notebook"}


def _fits(value: object, usual: object) -> bool:
    if isinstance(usual, bool | str | dict):
        return isinstance(value, type(usual))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flag(written: Mapping[str, Any], name: str, usual: bool) -> bool:
    value = written.get(name)
    return usual if value is None else bool(value)


def _number(written: Mapping[str, Any], name: str, usual: float) -> float:
    value = written.get(name)
    try:
        return usual if value in (None, "") else float(str(value))
    except ValueError:
        raise OrderError(f"{name}: invalid number {value!r}: expected a number such as {usual}") from None


def _one_of(known: Sequence[str], written: Mapping[str, Any], name: str, usual: str) -> str:
    value = str(written.get(name) or usual)
    if value not in known:
        raise OrderError(f"{name}: unknown value {value!r}; choose one of: {', '.join(known)}")
    return value


def _texts(written: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(each) for each in written.get(name) or ())
