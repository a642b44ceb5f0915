"""Builds the status of a job: conditions, results and messages.

In: a status and new observations. Out: another status. Never: decides the next step; reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.features.notebooks import go_durations
from argosy.features.notebooks.run_backend import RunOutcome
from argosy.features.notebooks.runner.parameters import is_undeclared
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.observability.redaction.text_redaction import redact

INITIALIZING, BUILDING, BUILD_COMPLETE = "Initializing", "Building", "BuildComplete"
RUNNING, SUCCEEDED, FAILED = "ValidationRunning", "Succeeded", "Failed"
TERMINAL: Final = (SUCCEEDED, FAILED)
MAX_MESSAGE_CHARACTERS, MAX_OUTPUT_CHARACTERS, SHORT_OUTPUT_CHARACTERS = 200, 2000, 100
MAX_RESULTS, MAX_TOTAL_OUTPUT_CHARACTERS = 2000, 256 << 10  # cells; characters of all their outputs
MAX_DIFFS, MAX_FEEDBACK_ENTRIES, MAX_ATTEMPTS = 100, 100, 20
# Attempts whose artefacts are kept; characters of an artefact path.
MAX_ATTEMPTS_WITH_ARTEFACTS, MAX_PATH_CHARACTERS = 3, 512
MAX_ERROR_TYPE_CHARACTERS = 100  # characters

NO_REASON: Final = "no reason was given"
MISSING_PACKAGE_ERRORS: Final = ("ModuleNotFoundError", "ImportError")

# Condition reasons of the result categories
CONDITION_REASONS: Final = {
    "configuration_error": "ConfigurationError",
    "dependency_install_failed": "DependencyInstallFailed",
    "environment_setup_failed": "EnvironmentSetupFailed",
    "notebook_execution_failed": "NotebookExecutionFailed",
    "notebook_timeout": "ValidationTimeout",
    "git_clone_failed": "GitCloneFailed",
    "git_authentication_failed": "GitAuthenticationFailed",
    "build_failed": "BuildFailed",
    "build_timeout": "BuildTimeout",
    "infrastructure_error": "PodFailed",
    "pod_creation_failed": "PodCreationFailed",
}

Status = Mapping[str, Any]
Fields = dict[str, Any]


def choose_reason(outcome: RunOutcome) -> str:
    return CONDITION_REASONS.get(outcome.category, "ValidationFailed")


# -- messages ----------------------------------------------------------------------------------------------------------


def get_first_line(text: str, max_characters: int = MAX_MESSAGE_CHARACTERS) -> str:
    """argo: health messages are shown on one line."""
    line = next((line.strip() for line in redact(text).splitlines() if line.strip()), "")
    return line if len(line) <= max_characters else line[: max_characters - 1] + "…"


def describe_success(cells: Sequence[Mapping[str, Any]]) -> str:
    """Count the cells that ran, without text cells."""
    ran_cells = [cell for cell in cells if cell.get("type", "code") == "code" and cell.get("status") != "Skipped"]
    succeeded = sum(cell.get("status") == "Success" for cell in ran_cells)
    rate = 100.0 * succeeded / len(ran_cells) if ran_cells else 100.0
    return f"Validation completed: {succeeded}/{len(ran_cells)} cells succeeded ({rate:.1f}% success rate)"


def add_parameter_notes(message: str, outcome: RunOutcome) -> str:
    """Mention undeclared parameters even on success, because the notebook ran without them."""
    undeclared_remarks = [remark for remark in outcome.results.get("remarks") or () if is_undeclared(str(remark))]
    return (
        get_first_line("; ".join([message, *(f"note: {remark}" for remark in undeclared_remarks)]))
        if undeclared_remarks
        else message
    )


def list_undeclared_remarks(status: Status) -> list[str]:
    """Remarks of the runner about parameters that no cell declares."""
    remarks = (str(entry.get("message")) for entry in status.get("educationalFeedback") or ()
            if entry.get("category") == "remark")  # fmt: skip
    return [entry for entry in remarks if is_undeclared(entry)]


def describe_failure(outcome: RunOutcome, cells: Sequence[Mapping[str, Any]]) -> str:
    if error_text := _describe_exception(outcome, cells):
        return get_first_line(f"Cell execution failed: {error_text}")
    comparison = outcome.results.get("comparison") or {}
    if outcome.category == "golden_comparison_failed" and comparison:
        cell_counts = f"{comparison.get('matchedCells', 0)}/{comparison.get('totalCells', 0)}"
        return f"Validation failed: golden notebook comparison failed ({cell_counts} cells matched)"
    error_text = get_first_line(outcome.message) or NO_REASON
    return (
        error_text
        if error_text.startswith(("Validation failed", "Build failed"))
        else get_first_line(f"Validation failed: {error_text}")
    )


def _describe_exception(outcome: RunOutcome, cells: Sequence[Mapping[str, Any]]) -> str:
    """Type and first line of the exception, if a cell failed because of it."""
    if outcome.category not in ("notebook_execution_failed", "dependency_install_failed"):
        return ""
    failed_cell = next((cell for cell in cells if cell.get("status") == "Failure"), {})
    name = get_first_line(str(failed_cell.get("errorName") or ""), 100)
    # argo: the documented message is the name alone; the condition says which package
    if name in MISSING_PACKAGE_ERRORS:
        return name
    text = str(failed_cell.get("errorMessage") or "")
    error_text = get_first_line(text.removeprefix(f"{name}:")) if name and text.startswith(f"{name}:") else ""
    return f"{name}: {error_text}" if error_text else name


def describe_failure_in_full(outcome: RunOutcome, cells: Sequence[Mapping[str, Any]]) -> str:
    """The full message: which cell failed, and its error."""
    failed_cell = next((cell for cell in cells if cell.get("status") == "Failure"), None)
    message = (
        f"cell {failed_cell.get('cell')}: {failed_cell.get('errorMessage') or ''}" if failed_cell else outcome.message
    )
    missing = ", ".join(map(str, outcome.results.get("packages_missing") or ()))
    return redact(message)[:1000] + (_build_package_advice(outcome, missing) if missing else "")


def _build_package_advice(outcome: RunOutcome, missing: str) -> str:
    """Advice of the backend if it gave one: local runs do not pull an image."""
    error = str(outcome.results.get("error") or "")
    backend_advice = outcome.message.removeprefix(error) if error and outcome.message.startswith(error) else ""
    return (
        redact(backend_advice) or f"; the image does not contain {missing}: add it to the image or to requirements.txt"
    )


# -- results -----------------------------------------------------------------------------------------------------------


def build_results(cells: Iterable[Mapping[str, Any]]) -> list[Fields]:
    """Cell results as the CRD defines them; outputs are truncated if they are too large for one object."""
    sorted_cells = sorted(cells, key=lambda cell: int(cell.get("cell", 0)))[:MAX_RESULTS]
    total_characters = sum(len(str(cell.get("output") or "")) for cell in sorted_cells)
    max_characters = (
        SHORT_OUTPUT_CHARACTERS if total_characters > MAX_TOTAL_OUTPUT_CHARACTERS else MAX_OUTPUT_CHARACTERS
    )
    return [
        _build_result(cell, MAX_OUTPUT_CHARACTERS if cell.get("status") == "Failure" else max_characters)
        for cell in sorted_cells
    ]


def _build_result(cell: Mapping[str, Any], max_characters: int) -> Fields:
    result: Fields = {"cellIndex": int(cell.get("cell", 0)), "status": cell.get("status") or "Skipped"}
    if result["status"] != "Skipped":
        result["executionTime"] = go_durations.format_duration(float(cell.get("seconds") or 0.0))
    for field in ("output", "errorMessage"):
        if text := redact(str(cell.get(field) or ""))[:max_characters]:
            result[field] = text
    error_type = (
        get_first_line(str(cell.get("errorName") or ""), MAX_ERROR_TYPE_CHARACTERS)
        if result["status"] == "Failure"
        else ""
    )
    if error_type:
        result["errorType"] = error_type
    return result


def build_validation_fields(outcome: RunOutcome) -> Fields:
    """Validation results within the limits of one object; None removes fields of an earlier run."""
    comparison = outcome.results.get("comparison")
    # Remarks, for example about a parameter that no cell declares, block nothing.
    remarks = (
        {"cell": -1, "severity": "info", "category": "remark", "message": entry}
        for entry in outcome.results.get("remarks") or ()
    )
    feedback = (*(outcome.results.get("findings") or ()), *remarks)
    limited_comparison = (
        {**comparison, "diffs": list(comparison.get("diffs") or ())[:MAX_DIFFS]} if comparison else None
    )
    return {
        "comparisonResult": limited_comparison,
        "educationalFeedback": [dict(entry) for entry in feedback][:MAX_FEEDBACK_ENTRIES] or None,
        "artefacts": [dict(entry) for entry in outcome.artefacts] or None,
    }


def add_files_to_last_attempt(
    attempts: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, str]]
) -> list[Fields]:
    """Attach artefacts to the last attempt: a later run may fail while these files are still served."""
    new_attempts = [dict(entry) for entry in attempts]
    short_artefacts = [dict(entry) for entry in files if len(str(entry.get("path"))) <= MAX_PATH_CHARACTERS]
    if short_artefacts:
        new_attempts[-1]["artefacts"] = short_artefacts
    for entry in [entry for entry in new_attempts if "artefacts" in entry][:-MAX_ATTEMPTS_WITH_ARTEFACTS]:
        del entry["artefacts"]
    return new_attempts


# -- conditions --------------------------------------------------------------------------------------------------------


def build_conditions(
    old_conditions: Sequence[Mapping[str, Any]],
    phase: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
    **more_conditions: str,
) -> list[Fields]:
    """All conditions of a phase. `more_conditions` are additional conditions with their status, such as GitCloned."""
    has_succeeded, has_failed = phase == SUCCEEDED, phase == FAILED
    statuses_by_type = {
        "Ready": _format_bool(has_succeeded),
        "Complete": _format_bool(has_succeeded),
        "Failed": _format_bool(has_failed),
        "Progressing": _format_bool(not has_succeeded and not has_failed),
        "ValidationStarted": _format_bool(phase == RUNNING) if not (has_succeeded or has_failed) else None,
        "ValidationComplete": _format_bool(has_succeeded),
        # k8s: kstatus reads these two; nothing else says that a failure is final
        "Reconciling": "True" if not has_succeeded and not has_failed else None,
        "Stalled": "True" if has_failed else None,
        **more_conditions,
    }
    old_by_type = {str(condition["type"]): condition for condition in old_conditions}
    kept_conditions = [dict(condition) for name, condition in old_by_type.items() if name not in statuses_by_type]
    new_conditions = [
        _build_condition(old_by_type.get(name), name, status, reason, message, generation, now)
        for name, status in statuses_by_type.items()
        if status is not None or (name == "ValidationStarted" and name in old_by_type)
    ]
    return [*new_conditions, *kept_conditions]


def _build_condition(
    previous: Mapping[str, Any] | None,
    name: str,
    status: str | None,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> Fields:
    if status is None:  # unchanged
        assert previous is not None
        return dict(previous)
    is_unchanged = previous is not None and previous["status"] == status
    transition_time = previous["lastTransitionTime"] if previous is not None and is_unchanged else format_timestamp(now)
    return {
        "type": name, "status": status, "reason": reason, "message": redact(message)[:1000],
        "lastTransitionTime": transition_time, "observedGeneration": generation,
    }  # fmt: skip


def _format_bool(value: bool) -> str:
    return "True" if value else "False"
