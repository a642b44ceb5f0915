"""Builds the status of a job: conditions, results and messages.

In: a status and new observations. Out: another status. Never: decides the next step; reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.features.notebooks import durations
from argosy.features.notebooks.redaction import redact
from argosy.features.notebooks.run_backend import Outcome
from argosy.features.notebooks.runner.parameters import is_undeclared
from argosy.kube.objects.timestamps import written

INITIALIZING, BUILDING, BUILT = "Initializing", "Building", "BuildComplete"
RUNNING, SUCCEEDED, FAILED = "ValidationRunning", "Succeeded", "Failed"
TERMINAL: Final = (SUCCEEDED, FAILED)
MOST_MESSAGE, MOST_OUTPUT, SHORT_OUTPUT = 200, 2000, 100
MOST_RESULTS, MOST_OUTPUTS = 2000, 256 << 10  # cells; characters of all their outputs
MOST_DIFFS, MOST_FEEDBACK, MOST_ATTEMPTS = 100, 100, 20
MOST_REMEMBERED, LONGEST_PATH = 3, 512  # attempts whose artefacts are kept; characters of an artefact path
MAX_ERROR_TYPE = 100  # characters

NO_REASON: Final = "no reason was given"
MISSING_PACKAGE: Final = ("ModuleNotFoundError", "ImportError")

# Condition reasons of the result categories
REASONS: Final = {
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


def reason_of(outcome: Outcome) -> str:
    return REASONS.get(outcome.category, "ValidationFailed")


# -- messages ----------------------------------------------------------------------------------------------------------


def first_line(text: str, most: int = MOST_MESSAGE) -> str:
    """argo: health messages are shown on one line."""
    line = next((line.strip() for line in redact(text).splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 1] + "…"


def success(cells: Sequence[Mapping[str, Any]]) -> str:
    """Count the cells that ran, without text cells."""
    ran = [each for each in cells if each.get("type", "code") == "code" and each.get("status") != "Skipped"]
    good = sum(each.get("status") == "Success" for each in ran)
    rate = 100.0 * good / len(ran) if ran else 100.0
    return f"Validation completed: {good}/{len(ran)} cells succeeded ({rate:.1f}% success rate)"


def noted(said: str, outcome: Outcome) -> str:
    """Mention undeclared parameters even on success, because the notebook ran without them."""
    unknown = [each for each in outcome.results.get("remarks") or () if is_undeclared(str(each))]
    return first_line("; ".join([said, *(f"note: {each}" for each in unknown)])) if unknown else said


def undeclared(status: Status) -> list[str]:
    """Remarks of the runner about parameters that no cell declares."""
    told = (str(each.get("message")) for each in status.get("educationalFeedback") or ()
            if each.get("category") == "remark")  # fmt: skip
    return [each for each in told if is_undeclared(each)]


def failure(outcome: Outcome, cells: Sequence[Mapping[str, Any]]) -> str:
    if said := _raised(outcome, cells):
        return first_line(f"Cell execution failed: {said}")
    comparison = outcome.results.get("comparison") or {}
    if outcome.category == "golden_comparison_failed" and comparison:
        counted = f"{comparison.get('matchedCells', 0)}/{comparison.get('totalCells', 0)}"
        return f"Validation failed: golden notebook comparison failed ({counted} cells matched)"
    said = first_line(outcome.message) or NO_REASON
    return said if said.startswith(("Validation failed", "Build failed")) else first_line(f"Validation failed: {said}")


def _raised(outcome: Outcome, cells: Sequence[Mapping[str, Any]]) -> str:
    """Type and first line of the exception, if a cell failed because of it."""
    if outcome.category not in ("notebook_execution_failed", "dependency_install_failed"):
        return ""
    failed = next((each for each in cells if each.get("status") == "Failure"), {})
    name = first_line(str(failed.get("errorName") or ""), 100)
    if name in MISSING_PACKAGE:  # argo: the documented message is the name alone; the condition says which package
        return name
    text = str(failed.get("errorMessage") or "")
    said = first_line(text.removeprefix(f"{name}:")) if name and text.startswith(f"{name}:") else ""
    return f"{name}: {said}" if said else name


def details(outcome: Outcome, cells: Sequence[Mapping[str, Any]]) -> str:
    """The full message: which cell failed, and its error."""
    failed = next((each for each in cells if each.get("status") == "Failure"), None)
    said = f"cell {failed.get('cell')}: {failed.get('errorMessage') or ''}" if failed else outcome.message
    missing = ", ".join(map(str, outcome.results.get("packages_missing") or ()))
    return redact(said)[:1000] + (_advice(outcome, missing) if missing else "")


def _advice(outcome: Outcome, missing: str) -> str:
    """Advice of the backend if it gave one: local runs do not pull an image."""
    error = str(outcome.results.get("error") or "")
    rest = outcome.message.removeprefix(error) if error and outcome.message.startswith(error) else ""
    return redact(rest) or f"; the image does not contain {missing}: add it to the image or to requirements.txt"


# -- results -----------------------------------------------------------------------------------------------------------


def results(cells: Iterable[Mapping[str, Any]]) -> list[Fields]:
    """Cell results as the CRD defines them; outputs are truncated if they are too large for one object."""
    chosen = sorted(cells, key=lambda each: int(each.get("cell", 0)))[:MOST_RESULTS]
    whole = sum(len(str(each.get("output") or "")) for each in chosen)
    most = SHORT_OUTPUT if whole > MOST_OUTPUTS else MOST_OUTPUT
    return [_result(each, MOST_OUTPUT if each.get("status") == "Failure" else most) for each in chosen]


def _result(cell: Mapping[str, Any], most: int) -> Fields:
    found: Fields = {"cellIndex": int(cell.get("cell", 0)), "status": cell.get("status") or "Skipped"}
    if found["status"] != "Skipped":
        found["executionTime"] = durations.written(float(cell.get("seconds") or 0.0))
    for field in ("output", "errorMessage"):
        if text := redact(str(cell.get(field) or ""))[:most]:
            found[field] = text
    error_type = first_line(str(cell.get("errorName") or ""), MAX_ERROR_TYPE) if found["status"] == "Failure" else ""
    if error_type:
        found["errorType"] = error_type
    return found


def judged(outcome: Outcome) -> Fields:
    """Validation results within the limits of one object; None removes fields of an earlier run."""
    comparison = outcome.results.get("comparison")
    remarks = (
        {"cell": -1, "severity": "info", "category": "remark", "message": each}
        for each in outcome.results.get("remarks") or ()
    )  # of a parameter that no cell declares, say: they block nothing
    feedback = (*(outcome.results.get("findings") or ()), *remarks)
    shown = {**comparison, "diffs": list(comparison.get("diffs") or ())[:MOST_DIFFS]} if comparison else None
    return {
        "comparisonResult": shown,
        "educationalFeedback": [dict(each) for each in feedback][:MOST_FEEDBACK] or None,
        "artefacts": [dict(each) for each in outcome.artefacts] or None,
    }


def remembered(attempts: Sequence[Mapping[str, Any]], files: Sequence[Mapping[str, str]]) -> list[Fields]:
    """Attach artefacts to the last attempt: a later run may fail while these files are still served."""
    found = [dict(each) for each in attempts]
    short = [dict(each) for each in files if len(str(each.get("path"))) <= LONGEST_PATH]
    if short:
        found[-1]["artefacts"] = short
    for each in [each for each in found if "artefacts" in each][:-MOST_REMEMBERED]:
        del each["artefacts"]
    return found


# -- conditions --------------------------------------------------------------------------------------------------------


def conditions(
    known: Sequence[Mapping[str, Any]],
    phase: str,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
    **more: str,
) -> list[Fields]:
    """All conditions of a phase. `more_conditions` are additional conditions with their status, such as GitCloned."""
    is_good, is_bad = phase == SUCCEEDED, phase == FAILED
    wanted = {
        "Ready": _word(is_good),
        "Complete": _word(is_good),
        "Failed": _word(is_bad),
        "Progressing": _word(not is_good and not is_bad),
        "ValidationStarted": _word(phase == RUNNING) if not (is_good or is_bad) else None,
        "ValidationComplete": _word(is_good),
        # k8s: kstatus reads these two; nothing else says that a failure is final
        "Reconciling": "True" if not is_good and not is_bad else None,
        "Stalled": "True" if is_bad else None,
        **more,
    }
    before = {str(each["type"]): each for each in known}
    kept = [dict(each) for name, each in before.items() if name not in wanted]
    told = [
        _condition(before.get(name), name, status, reason, message, generation, now)
        for name, status in wanted.items()
        if status is not None or (name == "ValidationStarted" and name in before)
    ]
    return [*told, *kept]


def _condition(
    before: Mapping[str, Any] | None,
    name: str,
    status: str | None,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> Fields:
    if status is None:  # unchanged
        assert before is not None
        return dict(before)
    is_same = before is not None and before["status"] == status
    since = before["lastTransitionTime"] if before is not None and is_same else written(now)
    return {
        "type": name, "status": status, "reason": reason, "message": redact(message)[:1000],
        "lastTransitionTime": since, "observedGeneration": generation,
    }  # fmt: skip


def _word(is_so: bool) -> str:
    return "True" if is_so else "False"
