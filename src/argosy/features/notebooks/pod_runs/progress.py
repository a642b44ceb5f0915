"""Reads the state of a run from its Pod and ConfigMap.

In: live manifests, the time. Out: a RunState. Never: trusts data that a notebook could have written beyond its own
result; accepts unbounded text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from argosy.features.notebooks import statuses
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.pod_runs import diagnosis
from argosy.features.notebooks.pod_runs.objects import EVENTS, RESULTS
from argosy.features.notebooks.pod_runs.pod import CLONE, VALIDATOR
from argosy.features.notebooks.run_backend import Outcome, Standing
from argosy.features.notebooks.runner.events import Heard
from argosy.features.notebooks.runner.termination_message import unpack
from argosy.kube.objects import Manifest
from argosy.kube.schema.bundled_crds import definition
from argosy.kube.schema.crd import custom_kinds

(KIND,) = custom_kinds(definition("notebookvalidationjobs.mlops.mlops.dev"))
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_WORDS: Final = {"succeeded": "Success", "failed": "Failure"}
_NAME: Final = re.compile(r"(\w+): ")


def standing(job: Job, pod: Manifest, notes: Manifest | None, now: datetime) -> Standing:
    status, name = pod.get("status") or {}, str(pod["metadata"]["name"])
    data: Mapping[str, Any] = (notes or {}).get("data") or {}
    heard, revision = _heard(data), _revision(status)
    phase = status.get("phase") or "Pending"
    if phase in ("Succeeded", "Failed"):
        outcome, told = _ended(pod, phase, _results(status, data))
        cells = tuple(heard.cells) if len(heard.cells) >= len(told) else told  # the last report may be missing
        return Standing("ended", cells, heard.total or len(cells), name, revision, outcome, outcome.message)
    if phase == "Running" and _has_begun(status):
        return Standing("running", tuple(heard.cells), heard.total, name, revision)
    began = status.get("startTime") or pod["metadata"].get("creationTimestamp")
    waited = (now - datetime.fromisoformat(str(began))).total_seconds() if began else 0.0
    outcome_or_none, why = diagnosis.stuck(pod, waited, job.timeout)
    if outcome_or_none is not None:
        return Standing("ended", (), 0, name, revision, outcome_or_none, outcome_or_none.message)
    return Standing("waiting", (), 0, name, revision, message=why or _waits_for(status))


def _ended(pod: Manifest, phase: str, results: dict[str, Any] | None) -> tuple[Outcome, tuple[Mapping[str, Any], ...]]:
    """Ignore results that do not fit the job status: the process in the Pod can write anything."""
    try:
        outcome = _outcome(pod, phase, results)
        cells = _cells(outcome.results)
        fields = {name: value for name, value in statuses.judged(outcome).items() if value is not None}
        told = {"spec": {}, "status": {**fields, "results": statuses.results(cells)}}
        if KIND.decode(told)[1] or any(fault.field.startswith("status") for fault in KIND.validate(told)):
            raise ValueError("does not match the CRD")
        return outcome, cells
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
        return _outcome(pod, phase, None), ()


def _outcome(pod: Manifest, phase: str, results: dict[str, Any] | None) -> Outcome:
    """Reported results count only if they agree with the phase of the Pod."""
    if results is None:
        return diagnosis.silent(pod) if phase == "Succeeded" else diagnosis.failed(pod)
    passed = phase == "Succeeded" and results["status"] == "succeeded"
    if not passed and results["status"] == "succeeded":
        return diagnosis.failed(pod)
    found = tuple(each for each in results.pop("artefacts", None) or () if _is_artefact(each))
    category = str(results.get("error_category") or "")
    return Outcome(passed, _message(results), category, results=results, artefacts=found if passed else ())


def _message(results: Mapping[str, Any]) -> str:
    if results["status"] == "succeeded":
        numbers: Mapping[str, Any] = results.get("statistics") or {}
        good, bad = int(numbers.get("succeeded_cells") or 0), int(numbers.get("failed_cells") or 0)
        rate = float(numbers.get("success_rate") or 0.0)
        return f"Validation completed: {good}/{good + bad} cells succeeded ({rate:.1f}% success rate)"
    error = str(results.get("error") or "the notebook failed")
    missing = ", ".join(map(str, results.get("packages_missing") or ()))
    return f"{error}; use an image that contains {missing}, or set buildConfig" if missing else error


def _results(status: Manifest, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Results from the validator's termination message, or in full from the ConfigMap if both are of the same run."""
    told = unpack(str(_state(status, "containerStatuses", VALIDATOR, "terminated").get("message") or ""))
    if told is None or not told.get("cut"):
        return told
    full = unpack(str(data.get(RESULTS) or ""))
    same = full is not None and (full["status"], full.get("timestamp")) == (told["status"], told.get("timestamp"))
    return full if same else told


def _heard(data: Mapping[str, Any]) -> Heard:
    try:
        return Heard().hear(str(data.get(EVENTS) or "").splitlines())
    except (ValueError, KeyError, TypeError):
        return Heard()


def _cells(results: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Cell results in the format of events."""
    found = []
    for cell in results.get("cells") or ():
        if not isinstance(cell, Mapping) or not isinstance(cell.get("cell_index"), int):
            continue
        status, error = _WORDS.get(str(cell.get("status")), "Skipped"), str(cell.get("error") or "")
        event = {"cell": cell["cell_index"], "type": str(cell.get("cell_type") or "code"), "status": status,
                 "seconds": float(cell.get("seconds") or 0.0), "output": str(cell.get("output") or "")}  # fmt: skip
        if status == "Failure":
            named = _NAME.match(error)
            event |= {"errorMessage": error, "errorName": named[1] if named else ""}
        found.append(event)
    return tuple(found)


def _is_artefact(each: object) -> bool:
    return isinstance(each, Mapping) and isinstance(each.get("path"), str) and isinstance(each.get("digest"), str)


def _revision(status: Manifest) -> str:
    """Commit from the termination message of git-clone."""
    said = str(_state(status, "initContainerStatuses", CLONE, "terminated").get("message") or "").strip()
    return said if _COMMIT.fullmatch(said) else ""


def _has_begun(status: Manifest) -> bool:
    return bool(_state(status, "containerStatuses", VALIDATOR, "running")) or bool(
        _state(status, "containerStatuses", VALIDATOR, "terminated")
    )


def _waits_for(status: Manifest) -> str:
    for each in status.get("initContainerStatuses") or ():
        if (each.get("state") or {}).get("running"):
            return "Fetching the notebook" if each.get("name") == CLONE else f"Running {each.get('name')}"
    return "Waiting for the Pod to start"


def _state(status: Manifest, field: str, name: str, state: str) -> Mapping[str, Any]:
    for each in status.get(field) or ():
        if each.get("name") == name:
            found: Mapping[str, Any] = (each.get("state") or {}).get(state) or {}
            return found
    return {}
