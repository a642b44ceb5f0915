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

from argosy.features.notebooks.runner.categories import (
    CONFIGURATION,
    DEPENDENCY,
    ENVIRONMENT,
    EXECUTION,
    INTERRUPTED,
    TIMEOUT,
)
from argosy.features.notebooks.runner.events import Cell, shortened
from argosy.features.notebooks.runner.execution import INTERRUPTION, Failure, Ran

PASSED, FAILED, UNREADABLE = 0, 1, 2  # exit codes
_NO_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_WORDS = {"Success": "succeeded", "Failure": "failed", "Skipped": "skipped"}


@dataclass(frozen=True)
class Verdict:
    """Result of validating a notebook before or after its run. Empty: nothing blocks it."""

    error: str = ""
    category: str = ""
    comparison: Mapping[str, Any] | None = None
    findings: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def of(ran: Ran, named: str, verdict: Verdict) -> dict[str, Any]:
    error, category = (
        (_sentence(ran.failure), _category(ran.failure)) if ran.failure else (verdict.error, verdict.category)
    )
    missing = sorted({found[1].partition(".")[0] for found in [_NO_MODULE.search(_sentence(ran.failure))] if found})
    counts = ran.notebook.cells
    return {
        "status": "failed" if error else "succeeded",
        "error": shortened(error),
        "error_category": category,
        "exit_code": FAILED if error else PASSED,
        "notebook_path": named,
        "execution_duration_seconds": round(ran.seconds, 3),
        "timestamp": now(),
        "cells": [_cell(cell, counts[cell.cell], ran.failure) for cell in ran.cells],
        "statistics": statistics(ran.cells),
        "comparison": dict(verdict.comparison) if verdict.comparison else None,
        "findings": [dict(each) for each in verdict.findings],
        "packages_missing": missing if category == DEPENDENCY else [],
        "remarks": list(ran.remarks),
    }


def stopped(named: str, verdict: Verdict, cells: Sequence[Cell]) -> dict[str, Any]:
    """Results of a notebook that did not run because of findings in its source."""
    return {
        **refused(named, verdict.error, verdict.category, FAILED),
        "cells": [_cell(cell, {}, None) for cell in cells],
        "statistics": {**statistics(cells), "success_rate": 0.0},
        "findings": [dict(each) for each in verdict.findings],
    }


def refused(named: str, error: str, category: str = CONFIGURATION, code: int = UNREADABLE) -> dict[str, Any]:
    """Results of a run that could not start."""
    return {
        "status": "failed", "error": shortened(error), "error_category": category, "exit_code": code,
        "notebook_path": named, "execution_duration_seconds": 0.0, "timestamp": now(), "cells": [],
        "statistics": statistics([]), "comparison": None, "findings": [], "packages_missing": [], "remarks": [],
    }  # fmt: skip


def statistics(cells: Sequence[Cell]) -> dict[str, Any]:
    code = [cell for cell in cells if cell.type == "code"]
    good = sum(cell.status == "Success" for cell in code)
    bad = sum(cell.status == "Failure" for cell in code)
    skipped_on_purpose = 0 if bad else len(code) - good
    ought = len(code) - skipped_on_purpose
    return {
        "total_cells": len(cells),
        "code_cells": len(code),
        "succeeded_cells": good,
        "failed_cells": bad,
        "success_rate": round(100.0 * good / ought, 2) if ought else 100.0,
    }


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cell(cell: Cell, written: Mapping[str, Any], failure: Failure | None) -> dict[str, Any]:
    is_it = failure is not None and failure.cell == cell.cell
    return {
        "cell_index": cell.cell,
        "cell_type": cell.type,
        "execution_count": written.get("execution_count"),
        "status": _WORDS[cell.status],
        "seconds": round(cell.seconds, 3),
        "output": shortened(cell.output),
        "error": shortened(cell.error_message) if is_it else "",
        "traceback": shortened(failure.traceback) if is_it and failure else "",
    }


def _sentence(failure: Failure | None) -> str:
    if failure is None:
        return ""
    return f"cell {failure.cell}: {failure.message}" if failure.cell >= 0 else failure.message


def _category(failure: Failure | None) -> str:
    """By the type of the exception, not by words that a notebook prints."""
    name = failure.name if failure else ""
    if name in ("ModuleNotFoundError", "ImportError"):
        return DEPENDENCY
    if name in ("PermissionError", "KernelStart"):
        return ENVIRONMENT
    if name == INTERRUPTION:
        return INTERRUPTED
    return TIMEOUT if name == "Timeout" else EXECUTION
