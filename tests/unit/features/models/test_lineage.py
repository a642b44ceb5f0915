"""Lineage of a served model, traced by file digests and volume paths."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.models.lineage import trace_model
from argosy.kube.objects import Manifest

OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def service(uri: str = "pvc://models/fraud") -> Manifest:
    model = {"modelFormat": {"name": "python"}, "storageUri": uri}
    return {
        "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
        "metadata": {"name": "fraud", "namespace": "ml"}, "spec": {"predictor": {"model": model}},
    }  # fmt: skip


def job(name: str, *runs: tuple[str, str, str], phase: str = "Succeeded", **mount: str) -> Manifest:
    """`runs`: completion time, file path and digest of each run."""
    attempts = [
        {
            "number": number, "generation": number, "gitCommit": f"{number}" * 40, "completionTime": ended,
            "artefacts": [{"path": path, "digest": digest}],
        }
        for number, (ended, path, digest) in enumerate(runs, 1)
    ]  # fmt: skip
    pod = {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "models"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/mnt/models", **mount}],
    }
    spec = {"notebook": {"git": {"url": "https://git.example.com/a.git"}, "path": f"{name}.ipynb"}, "podConfig": pod}
    status = {"phase": phase, "message": "Cell execution failed: AssertionError", "attempts": attempts}
    return {"metadata": {"name": name, "namespace": "ml"}, "spec": spec, "status": status}


def pod(started: str, **metadata: Any) -> Manifest:
    return {"metadata": {"name": "fraud-1", **metadata}, "status": {"startTime": started}}


def test_lineage_contains_the_publishing_run_and_the_run_with_the_same_digest() -> None:
    train = job("train", ("2026-01-01T00:00:01Z", "/mnt/models/candidate/model.py", NEW))
    other = job("other", ("2026-01-01T00:00:01Z", "/mnt/models/data.csv", OLD))
    publish = job("publish", ("2026-01-01T00:00:02Z", "/mnt/models/fraud/model.py", NEW))
    lineage = trace_model(service(), [publish, other, train], [pod("2026-01-01T00:00:03Z")])
    assert [run.job for run in lineage.runs] == ["train", "publish"]
    assert lineage.runs[-1].files[0].place == "pvc://models/fraud/model.py"
    assert (lineage.is_current, lineage.troubles) == (True, ())


def test_pod_started_before_the_file_does_not_serve_it() -> None:
    publish = job("publish", ("2026-01-01T00:00:02Z", "/mnt/models/fraud/model.py", NEW))
    pods = [pod("2026-01-01T00:00:01Z"), pod("2026-01-01T00:00:01Z", deletionTimestamp="2026-01-01T00:00:05Z")]
    lineage = trace_model(service(), [publish], pods)
    assert [served_copy.is_current for served_copy in lineage.copies] == [False]
    assert not lineage.is_current


def test_failed_later_run_is_reported_and_the_served_file_stays_current() -> None:
    publish = job("publish", ("2026-01-01T00:00:02Z", "/mnt/models/fraud/model.py", OLD), phase="Failed")
    lineage = trace_model(service(), [publish], [pod("2026-01-01T00:00:02Z")])
    assert lineage.is_current
    [trouble] = lineage.troubles
    assert trouble.startswith("publish: the last run failed (Cell execution failed: AssertionError)")


def test_sub_path_mount_is_resolved_to_the_volume_path() -> None:
    publish = job("publish", ("2026-01-01T00:00:02Z", "/mnt/models/model.py", NEW), subPath="fraud")
    lineage = trace_model(service(), [publish], [])
    assert lineage.runs[-1].files[0].place == "pvc://models/fraud/model.py"


def test_folder_with_the_same_name_prefix_is_not_the_model_folder() -> None:
    publish = job("publish", ("2026-01-01T00:00:02Z", "/mnt/models/fraud-2/model.py", NEW))
    lineage = trace_model(service(), [publish], [])
    assert lineage.runs == ()
    assert lineage.troubles == ("no notebook run in this namespace wrote a file to pvc://models/fraud",)


def test_model_outside_a_volume_cannot_be_traced() -> None:
    uri = "oci://example.com/model:1"
    assert trace_model(service(uri), [], []).troubles == (
        f"{uri} is not on a volume, so it cannot be traced to a notebook run",
    )


def test_first_run_with_the_digest_is_the_training_run() -> None:
    train = job(
        "train",
        ("2026-01-01T00:00:01Z", "/mnt/models/candidate/model.py", NEW),
        ("2026-01-01T00:00:02Z", "/mnt/models/candidate/model.py", OLD),  # never published
    )
    publish = job("publish", ("2026-01-01T00:00:03Z", "/mnt/models/fraud/model.py", NEW))
    lineage = trace_model(service(), [publish, train], [])
    assert lineage.trained is not None and (lineage.trained.job, lineage.trained.attempt) == ("train", 1)
    assert [run.job for run in lineage.runs] == ["train", "publish"]


def test_later_of_two_identical_writes_to_the_same_path_is_the_training_run() -> None:
    first = job("first", ("2026-01-01T00:00:01Z", "/mnt/models/fraud/model.py", NEW))
    second = job("second", ("2026-01-01T00:00:02Z", "/mnt/models/fraud/model.py", NEW))
    lineage = trace_model(service(), [second, first], [])
    assert lineage.trained is not None and lineage.trained.job == "second"


def test_runs_ending_in_the_same_second_are_ordered_by_start_time() -> None:
    same = "2026-01-01T00:00:03Z"
    train = job("train", (same, "/mnt/models/candidate/model.py", NEW))
    publish = job("publish", (same, "/mnt/models/fraud/model.py", NEW))
    train["status"]["attempts"][0]["startTime"] = "2026-01-01T00:00:01Z"
    publish["status"]["attempts"][0]["startTime"] = "2026-01-01T00:00:02Z"
    lineage = trace_model(service(), [publish, train], [])
    assert [run.job for run in lineage.runs] == ["train", "publish"]


@pytest.mark.parametrize("model", ["model.pkl", "weights.safetensors", "model.json"])
def test_run_that_wrote_only_a_report_is_not_the_training_run(model: str) -> None:
    train = job("train", ("2026-01-01T00:00:01Z", f"/mnt/models/fraud/{model}", NEW))
    judge = job("judge", ("2026-01-01T00:00:03Z", "/mnt/models/fraud/metrics.json", OLD))
    lineage = trace_model(service(), [judge, train], [pod("2026-01-01T00:00:02Z")])
    assert [run.job for run in lineage.runs] == ["train"]
    assert lineage.is_current  # the model has not changed since its Pod started


def test_model_in_a_text_file_has_a_training_run() -> None:
    train = job("train", ("2026-01-01T00:00:01Z", "/mnt/models/fraud/trees.txt", NEW))
    lineage = trace_model(service(), [train], [])
    assert lineage.trained is not None and lineage.trained.job == "train"
