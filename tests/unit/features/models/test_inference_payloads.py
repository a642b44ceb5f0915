"""Inference requests built from typed input, and summaries of the responses."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.models.inference_payloads import (
    build_inference_request,
    describe_error_response,
    render_curl_command,
    summarize_answer,
)
from argosy.gitops.live.inference_service import read_served_model


def model(name: str = "vLLM", protocol: str = "") -> object:
    spoken = {"protocolVersion": protocol} if protocol else {}
    served = {"modelFormat": {"name": name}, "storageUri": "s3://a/b", **spoken}
    return {"metadata": {"name": "web", "namespace": "ml"}, "spec": {"predictor": {"model": served}}}


@pytest.mark.parametrize(
    ("kind", "protocol", "typed", "path", "document"),
    [
        ("vLLM", "", "Hello", "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}]}),
        ("vLLM", "", "5", "/v1/chat/completions", {"messages": [{"role": "user", "content": "5"}]}),
        ("vLLM", "", '{"prompt": "x"}', "/v1/completions", {"prompt": "x"}),
        ("sklearn", "", "[[1, 2]]", "/v1/models/web:predict", {"instances": [[1, 2]]}),
        ("sklearn", "", "5", "/v1/models/web:predict", {"instances": [5]}),
        ("sklearn", "", "five", "/v1/models/web:predict", {"instances": ["five"]}),
        ("sklearn", "v2", "[[1, 2]]", "/v2/models/web/infer",
         {"inputs": [{"name": "input-0", "shape": [1, 2], "datatype": "INT64", "data": [1, 2]}]}),
        ("sklearn", "", '{"inputs": []}', "/v2/models/web/infer", {"inputs": []}),
    ],
)  # fmt: skip
def test_request_path_depends_on_model_and_input(
    kind: str, protocol: str, typed: str, path: str, document: object
) -> None:
    question = build_inference_request(read_served_model(model(kind, protocol)), typed)  # type: ignore[arg-type]
    assert (question.path, question.body) == (path, document)


def test_unsupported_request_object_is_rejected() -> None:
    with pytest.raises(UserError, match="messages, prompt, instances or inputs"):
        build_inference_request(read_served_model(model()), '{"question": "x"}')  # type: ignore[arg-type]


def test_response_summary_is_the_generated_text_or_prediction() -> None:
    assert summarize_answer({"choices": [{"message": {"content": "Hi"}}]}) == "Hi"
    assert summarize_answer({"choices": [{"text": "Hi"}]}) == "Hi"
    assert (
        summarize_answer({"predictions": [1]}) == "[1]"
        and summarize_answer({"outputs": [{"data": [1]}]}) == '[{"data": [1]}]'
    )
    assert (
        describe_error_response({"error": {"message": "no\nway"}}, b"") == "no way"
        and describe_error_response(None, b"<html>") == "<html>"
    )


def test_curl_command_quotes_the_body_for_the_shell() -> None:
    question = build_inference_request(read_served_model(model()), "it's; $(x)").with_model_name("web")  # type: ignore[arg-type]
    assert "'\"'\"'" in render_curl_command("http://web", question)


def test_served_model_application_is_read_from_the_tracking_id() -> None:
    tracked = {"argocd.argoproj.io/tracking-id": "shop:serving.kserve.io/InferenceService:ml/web"}
    served_model = read_served_model(
        {"metadata": {"name": "web", "namespace": "ml", "annotations": tracked}, "spec": {}}
    )
    assert (served_model.app, served_model.ready, served_model.runtime, served_model.url) == (
        "shop",
        "Unknown",
        "custom container",
        "",
    )
