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
DEFAULT_MAX_CELL_BYTES, DEFAULT_MAX_OUTPUT_BYTES = 1 << 20, 10 << 20
DEFAULT_TIMEOUT_SECONDS: Final = 1800.0
LEVELS: Final = ("learning", "development", "staging", "production")
STRATEGIES: Final = ("exact", "normalized")


class RunRequestError(ValueError):
    """The run request or a file that it names is invalid; the message says which, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class ComparisonConfig:
    """Settings of the golden comparison: `spec.comparisonConfig`."""

    strategy: str = "normalized"
    tolerance: float = 0.0001
    ignore_timestamps: bool = True
    ignore_execution_count: bool = True
    timestamp_patterns: tuple[str, ...] = ()
    ignore_output_types: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> ComparisonConfig:
        return cls(
            strategy=_read_choice(STRATEGIES, fields, "strategy", "normalized"),
            tolerance=_read_number(fields, "floatingPointTolerance", 0.0001),
            ignore_timestamps=_read_bool(fields, "ignoreTimestamps", True),
            ignore_execution_count=_read_bool(fields, "ignoreExecutionCount", True),
            timestamp_patterns=_read_strings(fields, "customTimestampPatterns"),
            ignore_output_types=_read_strings(fields, "ignoreOutputTypes"),
        )


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """Expected output of a cell: one entry of `spec.validationConfig.expectedOutputs`."""

    cell: int
    type: str = ""
    shape: str = ""  # "rows,cols"; -1 matches any number
    min_value: float | None = None
    max_value: float | None = None
    not_empty: bool = False

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> ExpectedOutput:
        return cls(
            cell=int(_read_number(fields, "cell", 0)),
            type=str(fields.get("type") or ""),
            shape=str(fields.get("shape") or ""),
            min_value=None if fields.get("minValue") in (None, "") else _read_number(fields, "minValue", 0),
            max_value=None if fields.get("maxValue") in (None, "") else _read_number(fields, "maxValue", 0),
            not_empty=_read_bool(fields, "notEmpty", False),
        )


@dataclass(frozen=True, slots=True)
class ValidationConfig:
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
    expected: tuple[ExpectedOutput, ...] = ()

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> ValidationConfig:
        level = _read_choice(LEVELS, fields, "level", "development")
        return cls(
            level=level,
            strict=_read_bool(fields, "strictMode", False),
            fail_on_stderr=_read_bool(fields, "failOnStderr", False),
            fail_on_warnings=_read_bool(fields, "failOnWarnings", False),
            detect_silent_failures=_read_bool(fields, "detectSilentFailures", True),
            require_exit_codes=_read_bool(fields, "requireExplicitExitCodes", False),
            check_output_types=_read_bool(fields, "checkOutputTypes", False),
            verify_assertions=_read_bool(fields, "verifyAssertions", False),
            educational=_read_bool(fields, "educationalMode", False) or level == "learning",
            expected=tuple(
                ExpectedOutput.from_wire(expected_output) for expected_output in fields.get("expectedOutputs") or ()
            ),
        )


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for one run. Paths are as the runner sees them; `-` for events, results or output is standard output."""

    notebook: str
    output: str = ""  # path of the executed notebook; "": it is not written
    results: str = ""
    events: str = ""
    folder: str = ""  # working folder of the cells; "": the folder of the notebook
    named: str = ""  # name of the notebook in the results; "": its path
    parameters: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # for the kernel only, added to the runner's own
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    cell_timeout_seconds: float = 0.0  # 0: only the timeout of the whole notebook applies
    kernel: str = ""  # "": the interpreter that runs the runner
    golden: str = ""
    comparison: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    most_cell_bytes: int = DEFAULT_MAX_CELL_BYTES
    most_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    keep_interrupted: bool = False  # an interrupted run still writes results and the notebook as far as it ran

    def to_json(self) -> str:
        """The request as JSON, without values that equal the default."""
        fields: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if value != _DEFAULTS.get(name):
                fields[name] = dict(value) if isinstance(value, Mapping) else value
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> RunRequest:
        """Raises RunRequestError if the JSON or one of its values is invalid."""
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise RunRequestError(f"run request: is not JSON ({error}); create it again") from None
        if not isinstance(fields, dict) or not isinstance(fields.get("notebook"), str) or not fields["notebook"]:
            raise RunRequestError("run request: names no notebook; set the path of an .ipynb file")
        if unknown := sorted(set(fields) - set(cls.__slots__)):
            raise RunRequestError(f"run request: unknown field {unknown[0]}; remove it")
        for name, default in _DEFAULTS.items():
            if name in fields and not _has_type_of(fields[name], default):
                raise RunRequestError(
                    f"run request: {name} has the wrong type; use a value like {default!r}, or omit it"
                )
        request = cls(**fields)
        request.read_comparison(), request.read_validation()
        return request

    def read_comparison(self) -> ComparisonConfig:
        return ComparisonConfig.from_wire(self.comparison)

    def read_validation(self) -> ValidationConfig:
        return ValidationConfig.from_wire(self.validation)


_EMPTY_REQUEST = RunRequest("")
_DEFAULTS: Final = {name: getattr(_EMPTY_REQUEST, name) for name in RunRequest.__slots__ if name != "notebook"}


def _has_type_of(value: object, default: object) -> bool:
    if isinstance(default, bool | str | dict):
        return isinstance(value, type(default))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_bool(fields: Mapping[str, Any], name: str, default: bool) -> bool:
    value = fields.get(name)
    return default if value is None else bool(value)


def _read_number(fields: Mapping[str, Any], name: str, default: float) -> float:
    value = fields.get(name)
    try:
        return default if value in (None, "") else float(str(value))
    except ValueError:
        raise RunRequestError(f"{name}: invalid number {value!r}: expected a number such as {default}") from None


def _read_choice(choices: Sequence[str], fields: Mapping[str, Any], name: str, default: str) -> str:
    value = str(fields.get(name) or default)
    if value not in choices:
        raise RunRequestError(f"{name}: unknown value {value!r}; choose one of: {', '.join(choices)}")
    return value


def _read_strings(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(item) for item in fields.get(name) or ())
