"""Inference requests: path and body for a user's input, and a summary of the response.

In: a model, user input. Out: an InferenceRequest; a summary. Never: I/O.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.live.inference_service import ServedModel

CHAT_PATH, COMPLETIONS_PATH, MODELS_PATH = "/v1/chat/completions", "/v1/completions", "/v1/models"
INPUT_FIELDS: Final = "messages, prompt, instances or inputs"


@dataclass(frozen=True)
class InferenceRequest:
    path: str
    body: dict[str, Any]

    @property
    def needs_name(self) -> bool:
        """True if the body needs a `model` field and has none."""
        return self.path in (CHAT_PATH, COMPLETIONS_PATH) and not self.body.get("model")

    def with_model_name(self, name: str) -> InferenceRequest:
        return InferenceRequest(self.path, {"model": name, **self.body})


def build_inference_request(model: ServedModel, input_text: str) -> InferenceRequest:
    """Build a request: text becomes a chat message for text models; a JSON object is sent as is. Raises UserError."""
    value = _parse_json(input_text)
    if isinstance(value, dict):
        return _build_json_request(model, value)
    if model.is_text and not isinstance(value, list):
        return InferenceRequest(CHAT_PATH, {"messages": [{"role": "user", "content": input_text}]})
    instances = value if isinstance(value, list) else [input_text if value is None else value]
    if model.protocol.endswith("v2"):
        return InferenceRequest(f"/v2/models/{model.name}/infer", {"inputs": [_build_tensor(instances)]})
    return InferenceRequest(f"{MODELS_PATH}/{model.name}:predict", {"instances": instances})


def _build_json_request(model: ServedModel, body: dict[str, Any]) -> InferenceRequest:
    paths = {
        "messages": CHAT_PATH,
        "prompt": COMPLETIONS_PATH,
        "instances": f"{MODELS_PATH}/{model.name}:predict",
        "inputs": f"/v2/models/{model.name}/infer",
    }
    path = next((path for field, path in paths.items() if field in body), None)
    if path is None:
        raise UserError(f"the JSON object has none of {INPUT_FIELDS}; add one of them, or enter a text")
    return InferenceRequest(path, body)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _build_tensor(instances: list[Any]) -> dict[str, Any]:
    shape, values = [len(instances)], instances
    while values and all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        shape.append(len(values[0]))
        values = [inner for value in values for inner in value]
    kinds = {type(value) for value in values}
    kind = "INT64" if kinds == {int} else "FP64" if kinds and kinds <= {int, float} else "BYTES"
    return {"name": "input-0", "shape": shape, "datatype": kind, "data": values}


def summarize_answer(answer: Any) -> str:
    """The text of a chat answer, or all predictions."""
    if not isinstance(answer, dict):
        return json.dumps(answer, ensure_ascii=False)
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        text = (choices[0].get("message") or {}).get("content") or choices[0].get("text")
        if text is not None:
            return str(text)
    for field in ("predictions", "outputs"):
        if field in answer:
            return json.dumps(answer[field], ensure_ascii=False)
    return json.dumps(answer, ensure_ascii=False)


def describe_error_response(answer: Any, body: bytes) -> str:
    """The error message of a failed response, in one line."""
    error = answer.get("error", answer.get("detail")) if isinstance(answer, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return " ".join(str(error or body[:300].decode(errors="replace")).split())


def render_curl_command(url: str, inference_request: InferenceRequest, *, insecure: bool = False) -> str:
    """Render the request as a curl command."""
    data = shlex.quote(json.dumps(inference_request.body, ensure_ascii=False))
    flag = " -k" if insecure else ""
    return f"curl -sS{flag} {shlex.quote(url + inference_request.path)} -H 'Content-Type: application/json' -d {data}"


def list_readiness_paths(model: ServedModel) -> tuple[str, ...]:
    """Readiness paths of model servers; one that returns 200 is enough."""
    if model.is_text:
        return ("/health", MODELS_PATH)
    return (f"{MODELS_PATH}/{model.name}", f"/v2/models/{model.name}/ready")
