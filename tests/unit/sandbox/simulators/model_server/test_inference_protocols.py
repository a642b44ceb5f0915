"""Replies of the simulated model server for each path, computed without a running server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.sandbox.simulators.model_server.inference_protocols import answer_request
from argosy.sandbox.simulators.model_server.request_reply_types import ModelEntry, ModelRequest, RequestError
from argosy.sandbox.simulators.model_server.stub_model import StubModel
from argosy.sandbox.simulators.model_server.tensors import build_tensor, read_rows

STUB = ModelEntry("web-default", "web", "loaded", model=StubModel("web"))


def post(path: str, document: Any) -> Any:
    return answer_request(ModelRequest("POST", path, json.dumps(document).encode()), STUB)


def refused(path: str, document: Any, entry: ModelEntry = STUB) -> tuple[int, str]:
    with pytest.raises(RequestError) as caught:
        answer_request(ModelRequest("POST", path, json.dumps(document).encode()), entry)
    return caught.value.status, caught.value.message


@pytest.mark.parametrize(
    ("path", "document", "status"),
    [
        ("/v1/models/other:predict", {"instances": []}, 404),
        ("/v1/models/web:explain", {"instances": []}, 404),
        ("/v1/models/web:predict", {"instances": 3}, 400),
        ("/v1/models/web:predict", [1], 400),
        ("/v2/models/web/infer", {"inputs": []}, 400),
        ("/v2/models/web/infer", {"inputs": [{"name": "x", "shape": [3], "data": [1, 2]}]}, 400),
        ("/v1/chat/completions", {"messages": []}, 400),
        ("/v1/chat/completions", {"model": "other", "messages": [{"role": "user", "content": "x"}]}, 404),
        ("/v1/completions", {"prompt": "x", "max_tokens": -1}, 400),
        ("/v1/completions", {}, 400),
        ("/nothing", {}, 404),
    ],
)
def test_invalid_inference_requests_are_rejected(path: str, document: Any, status: int) -> None:
    assert refused(path, document)[0] == status


def test_model_that_failed_to_load_returns_503_with_the_reason() -> None:
    failed = ModelEntry("web-default", "web", "failed", "model.py defines no predict")
    for path, document in (
        ("/v1/models/web:predict", {"instances": [1]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ("/v2/models/web/ready", {}),
        ("/v2/health/ready", {}),
        ("/v1/models", {}),
    ):
        assert refused(path, document, failed) == (503, "model web is not ready: model.py defines no predict")


def test_max_tokens_does_not_truncate_the_stub_notice() -> None:
    body = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 1}
    text = post("/v1/chat/completions", body).document["choices"][0]["message"]["content"]
    assert text == "stub of web: simulated by argosy; no model runs here."


def test_streamed_chat_completion_equals_the_full_reply() -> None:
    body = {"messages": [{"role": "user", "content": "one  two"}]}
    whole = post("/v1/chat/completions", body).document["choices"][0]["message"]["content"]
    *events, last = list(post("/v1/chat/completions", {**body, "stream": True}).events)
    pieces = [json.loads(event)["choices"][0] for event in events]
    assert "".join(piece["delta"].get("content", "") for piece in pieces) == whole
    assert pieces[-1]["finish_reason"] == "stop" and last == "[DONE]"


def test_tensors_are_read_as_rows_and_predictions_built_as_tensors() -> None:
    body = {"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": [1, 2, 3, 4]}]}
    assert read_rows(body) == [[1, 2], [3, 4]]
    columns = {"inputs": [{"name": name, "shape": [2], "data": [1, 2]} for name in ("a", "b")]}
    assert read_rows(columns) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    assert build_tensor("y", [[1, 2], [3, 4]]) == {
        "name": "y",
        "shape": [2, 2],
        "datatype": "INT64",
        "data": [1, 2, 3, 4],
    }
    assert build_tensor("y", ["a"])["datatype"] == "BYTES" and build_tensor("y", [])["shape"] == [0]
