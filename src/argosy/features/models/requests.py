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

CHAT, COMPLETIONS, LISTED = "/v1/chat/completions", "/v1/completions", "/v1/models"
KNOWN: Final = "messages, prompt, instances or inputs"


@dataclass(frozen=True)
class Question:
    path: str
    document: dict[str, Any]

    @property
    def needs_name(self) -> bool:
        """True if the body needs a `model` field and has none."""
        return self.path in (CHAT, COMPLETIONS) and not self.document.get("model")

    def named(self, name: str) -> Question:
        return Question(self.path, {"model": name, **self.document})


def question_for(model: ServedModel, typed: str) -> Question:
    """Build a request: text becomes a chat message for text models; a JSON object is sent as is. Raises UserError."""
    found = _json(typed)
    if isinstance(found, dict):
        return _document(model, found)
    if model.is_text and not isinstance(found, list):
        return Question(CHAT, {"messages": [{"role": "user", "content": typed}]})
    instances = found if isinstance(found, list) else [typed if found is None else found]
    if model.protocol.endswith("v2"):
        return Question(f"/v2/models/{model.name}/infer", {"inputs": [_tensor(instances)]})
    return Question(f"{LISTED}/{model.name}:predict", {"instances": instances})


def _document(model: ServedModel, found: dict[str, Any]) -> Question:
    paths = {
        "messages": CHAT,
        "prompt": COMPLETIONS,
        "instances": f"{LISTED}/{model.name}:predict",
        "inputs": f"/v2/models/{model.name}/infer",
    }
    path = next((path for field, path in paths.items() if field in found), None)
    if path is None:
        raise UserError(f"the JSON object has none of {KNOWN}; add one of them, or enter a text")
    return Question(path, found)


def _json(typed: str) -> Any:
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return None


def _tensor(instances: list[Any]) -> dict[str, Any]:
    shape, values = [len(instances)], instances
    while values and all(isinstance(each, list) and len(each) == len(values[0]) for each in values):
        shape.append(len(values[0]))
        values = [one for each in values for one in each]
    kinds = {type(each) for each in values}
    kind = "INT64" if kinds == {int} else "FP64" if kinds and kinds <= {int, float} else "BYTES"
    return {"name": "input-0", "shape": shape, "datatype": kind, "data": values}


def gist(answer: Any) -> str:
    """The text of a chat answer, or all predictions."""
    if not isinstance(answer, dict):
        return json.dumps(answer, ensure_ascii=False)
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        said = (choices[0].get("message") or {}).get("content") or choices[0].get("text")
        if said is not None:
            return str(said)
    for field in ("predictions", "outputs"):
        if field in answer:
            return json.dumps(answer[field], ensure_ascii=False)
    return json.dumps(answer, ensure_ascii=False)


def refusal(answer: Any, body: bytes) -> str:
    """The error message of a failed response, in one line."""
    error = answer.get("error", answer.get("detail")) if isinstance(answer, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return " ".join(str(error or body[:300].decode(errors="replace")).split())


def curl(url: str, question: Question, *, insecure: bool = False) -> str:
    """Render the request as a curl command."""
    data = shlex.quote(json.dumps(question.document, ensure_ascii=False))
    flag = " -k" if insecure else ""
    return f"curl -sS{flag} {shlex.quote(url + question.path)} -H 'Content-Type: application/json' -d {data}"


def health_paths(model: ServedModel) -> tuple[str, ...]:
    """Readiness paths of model servers; one that returns 200 is enough."""
    if model.is_text:
        return ("/health", LISTED)
    return (f"{LISTED}/{model.name}", f"/v2/models/{model.name}/ready")
