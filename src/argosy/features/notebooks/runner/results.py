"""Builds results.json from a run and its validation.

In: a finished run and its ValidationResult. Out: a dict with the keys that validation Pods write, and some more. Never:
decides whether a notebook passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from argosy.features.notebooks.runner.cell_execution import INTERRUPTED_NAME, ExecutionFailure, ExecutionResult
from argosy.features.notebooks.runner.event_stream import CellResult, truncate
from argosy.features.notebooks.runner.failure_category_names import (
    CONFIGURATION,
    DEPENDENCY,
    ENVIRONMENT,
    EXECUTION,
    INTERRUPTED,
    TIMEOUT,
)

PASSED_EXIT_CODE, FAILED_EXIT_CODE, UNREADABLE_EXIT_CODE = 0, 1, 2  # exit codes
_NO_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_STATUS_WORDS = {"Success": "succeeded", "Failure": "failed", "Skipped": "skipped"}


@dataclass(frozen=True)
class ValidationResult:
    """Result of validating a notebook before or after its run. Empty: nothing blocks it."""

    error: str = ""
    category: str = ""
    comparison: Mapping[str, Any] | None = None
    findings: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def build_results(execution: ExecutionResult, notebook_name: str, validation: ValidationResult) -> dict[str, Any]:
    error, category = (
        (_describe_failure(execution.failure), _categorize_failure(execution.failure))
        if execution.failure
        else (validation.error, validation.category)
    )
    missing = sorted(
        {match[1].partition(".")[0] for match in [_NO_MODULE.search(_describe_failure(execution.failure))] if match}
    )
    source_cells = execution.notebook.cells
    return {
        "status": "failed" if error else "succeeded",
        "error": truncate(error),
        "error_category": category,
        "exit_code": FAILED_EXIT_CODE if error else PASSED_EXIT_CODE,
        "notebook_path": notebook_name,
        "execution_duration_seconds": round(execution.seconds, 3),
        "timestamp": format_current_time(),
        "cells": [_cell_to_wire(cell, source_cells[cell.cell], execution.failure) for cell in execution.cells],
        "statistics": count_cells(execution.cells),
        "comparison": dict(validation.comparison) if validation.comparison else None,
        "findings": [dict(finding) for finding in validation.findings],
        "packages_missing": missing if category == DEPENDENCY else [],
        "remarks": list(execution.remarks),
    }


def build_blocked_results(
    notebook_name: str, validation: ValidationResult, cells: Sequence[CellResult]
) -> dict[str, Any]:
    """Results of a notebook that did not run because of findings in its source."""
    return {
        **build_refused_results(notebook_name, validation.error, validation.category, FAILED_EXIT_CODE),
        "cells": [_cell_to_wire(cell, {}, None) for cell in cells],
        "statistics": {**count_cells(cells), "success_rate": 0.0},
        "findings": [dict(finding) for finding in validation.findings],
    }


def build_refused_results(
    notebook_name: str, error: str, category: str = CONFIGURATION, code: int = UNREADABLE_EXIT_CODE
) -> dict[str, Any]:
    """Results of a run that could not start."""
    return {
        "status": "failed",
        "error": truncate(error),
        "error_category": category,
        "exit_code": code,
        "notebook_path": notebook_name,
        "execution_duration_seconds": 0.0,
        "timestamp": format_current_time(),
        "cells": [],
        "statistics": count_cells([]),
        "comparison": None,
        "findings": [],
        "packages_missing": [],
        "remarks": [],
    }


def count_cells(cells: Sequence[CellResult]) -> dict[str, Any]:
    code = [cell for cell in cells if cell.type == "code"]
    succeeded = sum(cell.status == "Success" for cell in code)
    failed = sum(cell.status == "Failure" for cell in code)
    skipped_on_purpose = 0 if failed else len(code) - succeeded
    expected_count = len(code) - skipped_on_purpose
    return {
        "total_cells": len(cells),
        "code_cells": len(code),
        "succeeded_cells": succeeded,
        "failed_cells": failed,
        "success_rate": round(100.0 * succeeded / expected_count, 2) if expected_count else 100.0,
    }


def format_current_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cell_to_wire(cell: CellResult, source_cell: Mapping[str, Any], failure: ExecutionFailure | None) -> dict[str, Any]:
    is_failed = failure is not None and failure.cell == cell.cell
    return {
        "cell_index": cell.cell,
        "cell_type": cell.type,
        "execution_count": source_cell.get("execution_count"),
        "status": _STATUS_WORDS[cell.status],
        "seconds": round(cell.seconds, 3),
        "output": truncate(cell.output),
        "error": truncate(cell.error_message) if is_failed else "",
        "traceback": truncate(failure.traceback) if is_failed and failure else "",
    }


def _describe_failure(failure: ExecutionFailure | None) -> str:
    if failure is None:
        return ""
    return f"cell {failure.cell}: {failure.message}" if failure.cell >= 0 else failure.message


def _categorize_failure(failure: ExecutionFailure | None) -> str:
    """By the type of the exception, not by words that a notebook prints."""
    name = failure.name if failure else ""
    if name in ("ModuleNotFoundError", "ImportError"):
        return DEPENDENCY
    if name in ("PermissionError", "KernelStart"):
        return ENVIRONMENT
    if name == INTERRUPTED_NAME:
        return INTERRUPTED
    return TIMEOUT if name == "Timeout" else EXECUTION
