"""What `argosy notebook get` tells of a job."""

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


def test_what_an_earlier_run_set_off_is_not_told_of_the_last_one() -> None:
    runs = [{"number": 2}, {"number": 3}]
    old = trigger(2, 2, action="restart", kind="Deployment", name="model")
    assert lines("triggered", observedGeneration=3, attempts=runs, triggers=[old]) == []
    new = trigger(3, 3, action="sync", kind="Application", name="consumers")
    output = lines("triggered", observedGeneration=3, attempts=runs, triggers=[old, new])
    assert output == ["sync Application/consumers: Failed"]


def test_an_entry_that_lacks_its_name_is_told_without_none() -> None:
    broken = [trigger(1, 1, action="restart", kind="Deployment", message="no name"), trigger(1, 1)]
    output = lines("triggered", observedGeneration=1, attempts=[{"number": 1}], triggers=broken)
    assert output == ["restart Deployment: Failed: no name", "an entry: Failed"]


def test_a_failure_is_told_with_its_cell_on_one_line() -> None:
    condition = {"type": "Failed", "status": "True", "message": "cell 0: ModuleNotFoundError\n; install it"}
    assert lines("why", conditions=[condition]) == ["cell 0: ModuleNotFoundError ; install it"]
    assert lines("why", conditions=[{**condition, "status": "False"}]) == [""]


def test_a_remark_about_no_cell_names_none() -> None:
    remark = {"cell": -1, "severity": "info", "message": "parameter x: the notebook does not declare it"}
    assert lines("finding", educationalFeedback=[remark]) == ["info: parameter x: the notebook does not declare it"]
