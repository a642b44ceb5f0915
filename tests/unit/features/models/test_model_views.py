"""Views of served models: list rows, readiness steps, example requests and owner."""

from __future__ import annotations

import pytest

from argosy.features.models import model_views
from argosy.features.models.readiness import build_readiness_steps
from argosy.gitops.cluster_view.owning_application import owner_of
from argosy.gitops.live.tracking import TrackingSettings
from support.model_manifests import cache, job, pod, service


def test_model_row_has_training_run_and_serving_pods() -> None:
    row = model_views.build_model_row(service(), cache(pod(), job()))
    assert row.trained is not None and (row.trained.job, row.trained.attempt) == ("train", 2)
    assert (row.ready_pods, row.wanted_pods, row.health, row.is_stale) == (1, 1, "Healthy", False)


def test_pod_older_than_the_model_file_makes_the_row_stale() -> None:
    old = pod()
    old["status"]["startTime"] = "2026-11-15T11:00:00Z"
    assert model_views.build_model_row(service(), cache(old, job())).is_stale


def test_traffic_lists_the_latest_revision_first_without_zero_shares() -> None:
    shares = [
        {"revisionName": "fraud-1", "percent": 90},
        {"revisionName": "fraud-2", "percent": 10, "latestRevision": True},
        {"revisionName": "fraud-0", "percent": 0},
    ]
    row = model_views.build_model_row(service(components={"predictor": {"traffic": shares}}), cache())
    assert [(share.revision, share.percent) for share in row.shares] == [("fraud-2", 10), ("fraud-1", 90)]


def test_ready_model_has_all_readiness_steps_ok() -> None:
    links = build_readiness_steps(service(), [pod()])
    assert [link.name for link in links] == ["runtime", "storage", "load", "container", "route"]
    assert {link.state for link in links} == {"ok"}


@pytest.mark.parametrize(
    ("pods", "status", "name", "why"),
    [
        ([pod(init={"terminated": {"exitCode": 1, "reason": "Error", "message": "no such claim"}})], {}, "storage",
         "no such claim"),
        ([pod(main={"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})], {}, "container",
         "no such image"),
        ([pod()], {"modelStatus": {"states": {"targetModelState": "FailedToLoad"},
                                   "lastFailureInfo": {"reason": "ModelLoadFailed", "message": "bad pickle"}}},
         "load", "bad pickle"),
        ([pod()], {"modelStatus": {"states": {"targetModelState": "FailedToLoad"},
                                   "lastFailureInfo": {"reason": "ModelLoadFailed",
                                                       "message": 'persistentvolumeclaim "m" not found'}}},
         "storage", "persistentvolumeclaim"),
        ([pod()], {"conditions": [{"type": "IngressReady", "status": "False", "message": "no host"}]}, "route",
         "no host"),
        ([], {"modelStatus": {"transitionStatus": "InvalidSpec",
                              "lastFailureInfo": {"reason": "NoSupportingRuntime", "message": "none fits"}}},
         "runtime", "none fits"),
    ],
)  # fmt: skip
def test_later_steps_wait_for_a_failed_readiness_step(pods, status, name, why) -> None:  # type: ignore[no-untyped-def]
    links = build_readiness_steps(service(**status), pods)
    bad = [link for link in links if link.state == "bad"]
    assert [link.name for link in bad] == [name] and why in bad[0].why and bad[0].is_open
    behind = links[links.index(bad[0]) + 1 :]
    assert all(link.state == "waits" for link in behind)


def test_model_view_has_valid_example_requests() -> None:
    view = model_views.build_model_view(service(), cache(pod(), job()))
    assert view.protocol.startswith("V1") and view.question.body == {"instances": [[1, 2]]}
    assert view.curl.startswith("curl -sS http://fraud.ml.example.com/v1/models/fraud:predict")
    compile(view.python, "snippet", "exec")


def test_vllm_model_uses_the_openai_chat_protocol() -> None:
    text_model = service()
    text_model["spec"]["predictor"]["model"]["modelFormat"]["name"] = "vLLM"
    assert model_views.build_model_view(text_model, cache()).protocol == "OpenAI chat"


def test_owner_is_the_application_that_lists_the_object() -> None:
    app = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "frauds", "namespace": "argocd"},
        "status": {
            "resources": [
                {"group": "serving.kserve.io", "kind": "InferenceService", "namespace": "ml", "name": "fraud"}
            ]
        },
    }
    assert owner_of(service(), cache(app), TrackingSettings(), "argocd") == app


def test_tracked_object_that_no_application_lists_has_no_owner() -> None:
    app = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "frauds", "namespace": "argocd"},
    }
    assert owner_of(service(), cache(app), TrackingSettings(), "argocd") is None


def test_model_row_distinguishes_training_run_from_publishing_run() -> None:
    train, publish = job(), job()
    train["status"]["attempts"][-1]["artefacts"][0]["path"] = "/mnt/models/candidate/model.pkl"
    publish["metadata"] = {**publish["metadata"], "name": "publish", "uid": "2"}
    publish["status"]["attempts"][-1] |= {"number": 7, "completionTime": "2026-11-15T12:10:00Z"}
    row = model_views.build_model_row(service(), cache(pod(), train, publish))
    assert row.trained is not None and (row.trained.job, row.trained.attempt) == ("train", 2)
    assert row.published is not None and (row.published.job, row.published.attempt) == ("publish", 7)
