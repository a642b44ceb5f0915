"""Reads the state of a run from its Pod and ConfigMap.

In: live manifests, the time. Out: a RunState. Never: trusts data that a notebook could have written beyond its own
result; accepts unbounded text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from argosy.features.notebooks import notebook_validation_job_status
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.pod_runs import diagnosis
from argosy.features.notebooks.pod_runs.object_metadata import EVENTS_KEY, RESULTS_KEY
from argosy.features.notebooks.pod_runs.validation_pod_manifest import CLONE_CONTAINER, VALIDATOR_CONTAINER
from argosy.features.notebooks.run_backend import NotebookRunState, RunOutcome
from argosy.features.notebooks.runner.event_stream import RunProgress
from argosy.features.notebooks.runner.termination_message import unpack_results
from argosy.kube.objects import Manifest
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.schema.crd import build_custom_kinds

(JOB_KIND,) = build_custom_kinds(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CELL_STATUSES: Final = {"succeeded": "Success", "failed": "Failure"}
_ERROR_NAME: Final = re.compile(r"(\w+): ")


def read_run_state(job: NotebookJob, pod: Manifest, config_map: Manifest | None, now: datetime) -> NotebookRunState:
    status, name = pod.get("status") or {}, str(pod["metadata"]["name"])
    data: Mapping[str, Any] = (config_map or {}).get("data") or {}
    run_progress, revision = _read_progress(data), _read_revision(status)
    phase = status.get("phase") or "Pending"
    if phase in ("Succeeded", "Failed"):
        outcome, result_cells = _validate_results(pod, phase, _read_results(status, data))
        # The last report may be missing.
        cells = tuple(run_progress.cell_events) if len(run_progress.cell_events) >= len(result_cells) else result_cells
        return NotebookRunState(
            "ended", cells, run_progress.cell_count or len(cells), name, revision, outcome, outcome.message
        )
    if phase == "Running" and _has_started(status):
        return NotebookRunState("running", tuple(run_progress.cell_events), run_progress.cell_count, name, revision)
    started_at = status.get("startTime") or pod["metadata"].get("creationTimestamp")
    waited_seconds = (now - datetime.fromisoformat(str(started_at))).total_seconds() if started_at else 0.0
    pending_outcome, wait_reason = diagnosis.diagnose_pending_pod(pod, waited_seconds, job.timeout)
    if pending_outcome is not None:
        return NotebookRunState("ended", (), 0, name, revision, pending_outcome, pending_outcome.message)
    return NotebookRunState("waiting", (), 0, name, revision, message=wait_reason or _describe_wait(status))


def _validate_results(
    pod: Manifest, phase: str, results: dict[str, Any] | None
) -> tuple[RunOutcome, tuple[Mapping[str, Any], ...]]:
    """Ignore results that do not fit the job status: the process in the Pod can write anything."""
    try:
        outcome = _build_outcome(pod, phase, results)
        cells = _read_cells(outcome.results)
        fields = {
            name: value
            for name, value in notebook_validation_job_status.build_validation_fields(outcome).items()
            if value is not None
        }
        status_object = {
            "spec": {},
            "status": {**fields, "results": notebook_validation_job_status.build_results(cells)},
        }
        if JOB_KIND.decode(status_object)[1] or any(
            error.field.startswith("status") for error in JOB_KIND.validate(status_object)
        ):
            raise ValueError("does not match the CRD")
        return outcome, cells
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
        return _build_outcome(pod, phase, None), ()


def _build_outcome(pod: Manifest, phase: str, results: dict[str, Any] | None) -> RunOutcome:
    """Reported results count only if they agree with the phase of the Pod."""
    if results is None:
        return diagnosis.diagnose_silent_pod(pod) if phase == "Succeeded" else diagnosis.diagnose_failed_pod(pod)
    passed = phase == "Succeeded" and results["status"] == "succeeded"
    if not passed and results["status"] == "succeeded":
        return diagnosis.diagnose_failed_pod(pod)
    artefacts = tuple(entry for entry in results.pop("artefacts", None) or () if _is_artefact(entry))
    category = str(results.get("error_category") or "")
    return RunOutcome(passed, _build_message(results), category, results=results, artefacts=artefacts if passed else ())


def _build_message(results: Mapping[str, Any]) -> str:
    if results["status"] == "succeeded":
        statistics: Mapping[str, Any] = results.get("statistics") or {}
        succeeded, failed = int(statistics.get("succeeded_cells") or 0), int(statistics.get("failed_cells") or 0)
        rate = float(statistics.get("success_rate") or 0.0)
        return f"Validation completed: {succeeded}/{succeeded + failed} cells succeeded ({rate:.1f}% success rate)"
    error = str(results.get("error") or "the notebook failed")
    missing = ", ".join(map(str, results.get("packages_missing") or ()))
    return f"{error}; use an image that contains {missing}, or set buildConfig" if missing else error


def _read_results(status: Manifest, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Results from the validator's termination message, or in full from the ConfigMap if both are of the same run."""
    message_results = unpack_results(
        str(_find_container_state(status, "containerStatuses", VALIDATOR_CONTAINER, "terminated").get("message") or "")
    )
    if message_results is None or not message_results.get("cut"):
        return message_results
    full_results = unpack_results(str(data.get(RESULTS_KEY) or ""))
    is_same_run = full_results is not None and (full_results["status"], full_results.get("timestamp")) == (
        message_results["status"],
        message_results.get("timestamp"),
    )
    return full_results if is_same_run else message_results


def _read_progress(data: Mapping[str, Any]) -> RunProgress:
    try:
        return RunProgress().add_lines(str(data.get(EVENTS_KEY) or "").splitlines())
    except (ValueError, KeyError, TypeError):
        return RunProgress()


def _read_cells(results: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Cell results in the format of events."""
    events = []
    for cell in results.get("cells") or ():
        if not isinstance(cell, Mapping) or not isinstance(cell.get("cell_index"), int):
            continue
        status, error = _CELL_STATUSES.get(str(cell.get("status")), "Skipped"), str(cell.get("error") or "")
        event = {"cell": cell["cell_index"], "type": str(cell.get("cell_type") or "code"), "status": status,
                 "seconds": float(cell.get("seconds") or 0.0), "output": str(cell.get("output") or "")}  # fmt: skip
        if status == "Failure":
            name_match = _ERROR_NAME.match(error)
            event |= {"errorMessage": error, "errorName": name_match[1] if name_match else ""}
        events.append(event)
    return tuple(events)


def _is_artefact(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("path"), str) and isinstance(value.get("digest"), str)


def _read_revision(status: Manifest) -> str:
    """Commit from the termination message of git-clone."""
    message = str(
        _find_container_state(status, "initContainerStatuses", CLONE_CONTAINER, "terminated").get("message") or ""
    ).strip()
    return message if _COMMIT.fullmatch(message) else ""


def _has_started(status: Manifest) -> bool:
    return bool(_find_container_state(status, "containerStatuses", VALIDATOR_CONTAINER, "running")) or bool(
        _find_container_state(status, "containerStatuses", VALIDATOR_CONTAINER, "terminated")
    )


def _describe_wait(status: Manifest) -> str:
    for container_status in status.get("initContainerStatuses") or ():
        if (container_status.get("state") or {}).get("running"):
            return (
                "Fetching the notebook"
                if container_status.get("name") == CLONE_CONTAINER
                else f"Running {container_status.get('name')}"
            )
    return "Waiting for the Pod to start"


def _find_container_state(status: Manifest, field: str, name: str, state: str) -> Mapping[str, Any]:
    for container_status in status.get(field) or ():
        if container_status.get("name") == name:
            container_state: Mapping[str, Any] = (container_status.get("state") or {}).get(state) or {}
            return container_state
    return {}
