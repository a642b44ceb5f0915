"""`argosy notebook get`: lines that describe a job."""

from __future__ import annotations

from typing import Any

from argosy.features.notebooks.jobs_cli import _describe_job


def job(**status: Any) -> dict[str, Any]:
    spec = {"notebook": {"path": "a.ipynb", "git": {"url": "https://example.org/a.git"}}}
    return {"metadata": {"name": "train", "namespace": "ml"}, "spec": spec, "status": status}


def lines(label: str, **status: Any) -> list[str]:
    return [text for name, text in _describe_job(job(**status)) if name == label]


def trigger(generation: int, attempt: int, **more: str) -> dict[str, Any]:
    return {"generation": generation, "attempt": attempt, "status": "Failed", **more}


def test_triggers_of_an_earlier_run_are_not_listed() -> None:
    runs = [{"number": 2}, {"number": 3}]
    old = trigger(2, 2, action="restart", kind="Deployment", name="model")
    assert lines("triggered", observedGeneration=3, attempts=runs, triggers=[old]) == []
    new = trigger(3, 3, action="sync", kind="Application", name="consumers")
    output = lines("triggered", observedGeneration=3, attempts=runs, triggers=[old, new])
    assert output == ["sync Application/consumers: Failed"]


def test_trigger_without_a_name_is_printed_without_none() -> None:
    broken = [trigger(1, 1, action="restart", kind="Deployment", message="no name"), trigger(1, 1)]
    output = lines("triggered", observedGeneration=1, attempts=[{"number": 1}], triggers=broken)
    assert output == ["restart Deployment: Failed: no name", "an entry: Failed"]


def test_failure_message_is_printed_on_one_line() -> None:
    condition = {"type": "Failed", "status": "True", "message": "cell 0: ModuleNotFoundError\n; install it"}
    assert lines("why", conditions=[condition]) == ["cell 0: ModuleNotFoundError ; install it"]
    assert lines("why", conditions=[{**condition, "status": "False"}]) == [""]


def test_finding_without_a_cell_prints_no_cell_number() -> None:
    remark = {"cell": -1, "severity": "info", "message": "parameter x: the notebook does not declare it"}
    assert lines("finding", educationalFeedback=[remark]) == ["info: parameter x: the notebook does not declare it"]
