"""Answers inference requests in three protocols: KServe V1, KServe V2 (Open Inference) and OpenAI.

In: a ModelRequest and a model. Out: a ModelReply, or a RequestError. Never: I/O.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from argosy.sandbox.simulators.model_server.request_reply_types import (
    SIMULATED_NOTE,
    JsonDocument,
    ModelEntry,
    ModelReply,
    ModelRequest,
    RequestError,
)
from argosy.sandbox.simulators.model_server.tensors import build_tensor, read_rows

STARTED_AT = int(time.time())
CHAT_PATH, COMPLETIONS_PATH, MODELS_PATH = "/v1/chat/completions", "/v1/completions", "/v1/models"
HEALTH_PATHS = ("/health", "/v2/health/live", "/v2/health/ready", "/")


def is_openai_path(path: str) -> bool:
    return path in (CHAT_PATH, COMPLETIONS_PATH)


def answer_request(request: ModelRequest, entry: ModelEntry) -> ModelReply:
    """Answer one request. Raises RequestError."""
    path = request.path
    if is_openai_path(path):
        _require_method(request, "POST")
        return _answer_completion(request.parse_document(), entry, is_chat=path == CHAT_PATH)
    if path == MODELS_PATH:
        entry.require_loaded()
        return ModelReply({"object": "list", "data": [_build_model_card(entry)], "models": [entry.name]})
    if path in HEALTH_PATHS:
        entry.require_loaded()
        return ModelReply({"live": True, "ready": True, **_describe_model(entry)})
    if path.startswith(f"{MODELS_PATH}/"):
        return _answer_v1(request, path.removeprefix(f"{MODELS_PATH}/"), entry)
    if path.startswith("/v2/models/"):
        return _answer_v2(request, path.removeprefix("/v2/models/"), entry)
    if path == "/v2":
        return ModelReply({"name": "argosy", "version": SIMULATED_NOTE, "extensions": []})
    raise RequestError(404, f"path {path} not found; {describe_paths(entry.name)}")


def describe_paths(model_name: str) -> str:
    return f"use {MODELS_PATH}/{model_name}:predict, /v2/models/{model_name}/infer, {CHAT_PATH} or {COMPLETIONS_PATH}"


def _describe_model(entry: ModelEntry) -> JsonDocument:
    platform = entry.model.platform if entry.model else ""
    return {"name": entry.name, "platform": platform, "source": entry.source, "by": SIMULATED_NOTE}


def _build_model_card(entry: ModelEntry) -> JsonDocument:
    return {"id": entry.name, "object": "model", "created": STARTED_AT, "owned_by": SIMULATED_NOTE}


def _require_method(request: ModelRequest, method: str) -> None:
    if request.method != method:
        raise RequestError(405, f"method {request.method} not allowed for {request.path}; use {method}")


def _require_model_name(name: str, entry: ModelEntry) -> None:
    if name != entry.name:
        raise RequestError(404, f"model {name[:200]!r} not found; this server has {entry.name}")


def _answer_v1(request: ModelRequest, subpath: str, entry: ModelEntry) -> ModelReply:
    name, _, verb = subpath.partition(":")
    _require_model_name(name, entry)
    if not verb:
        entry.require_loaded()
        return ModelReply({**_build_model_card(entry), **_describe_model(entry), "ready": True})
    if verb != "predict":
        raise RequestError(404, f"unknown operation :{verb[:50]}; {describe_paths(entry.name)}")
    _require_method(request, "POST")
    model = entry.require_loaded()
    document = request.parse_document()
    instances = document.get("instances", document.get("inputs"))
    if not isinstance(instances, list):
        raise RequestError(400, 'the request has no instances; send {"instances": [...]}')
    return ModelReply({"predictions": model.predict(instances)})


def _answer_v2(request: ModelRequest, subpath: str, entry: ModelEntry) -> ModelReply:
    name, _, verb = subpath.partition("/")
    _require_model_name(name, entry)
    model = entry.require_loaded()
    if not verb:
        return ModelReply({"name": name, "versions": [], "platform": model.platform, "inputs": [], "outputs": []})
    if verb == "ready":
        return ModelReply({"name": name, "ready": True})
    if verb != "infer":
        raise RequestError(404, f"unknown operation /{verb[:50]}; {describe_paths(entry.name)}")
    _require_method(request, "POST")
    document = request.parse_document()
    output = build_tensor("predict", model.predict(read_rows(document)))
    response_fields = {"model_name": name, "id": str(document.get("id") or uuid.uuid4())}
    return ModelReply({**response_fields, "parameters": {"by": SIMULATED_NOTE}, "outputs": [output]})


def _answer_completion(document: JsonDocument, entry: ModelEntry, *, is_chat: bool) -> ModelReply:
    if document.get("model"):
        _require_model_name(str(document["model"]), entry)
    model = entry.require_loaded()
    prompt = _read_last_user_message(document) if is_chat else _read_prompt(document)
    max_tokens = document.get("max_completion_tokens") or document.get("max_tokens")
    if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1):
        raise RequestError(400, "invalid max_tokens: expected an integer above 0")
    text = model.complete(prompt, max_tokens)
    object_type = "chat.completion" if is_chat else "text_completion"
    completion_id = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}"
    common_fields = {
        "id": completion_id,
        "created": int(time.time()),
        "model": entry.name,
        "system_fingerprint": SIMULATED_NOTE,
    }
    if document.get("stream"):
        return ModelReply(
            {},
            events=_stream_events(
                {**common_fields, "object": f"{object_type}.chunk" if is_chat else object_type}, text, is_chat
            ),
        )
    prompt_tokens, completion_tokens = len(prompt.split()), len(text.split())
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    content_fields: JsonDocument = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
    choice = {"index": 0, **content_fields, "logprobs": None, "finish_reason": "stop"}
    return ModelReply({**common_fields, "object": object_type, "choices": [choice], "usage": usage})


def _stream_events(common_fields: JsonDocument, text: str, is_chat: bool) -> Iterator[str]:
    def render_event(content_fields: JsonDocument, finish_reason: str | None) -> str:
        return json.dumps(
            {**common_fields, "choices": [{"index": 0, **content_fields, "finish_reason": finish_reason}]}
        )

    words = text.split(" ")
    for index, word in enumerate(words):
        piece = word if index == 0 else f" {word}"
        role_fields = {"role": "assistant"} if index == 0 else {}
        yield render_event({"delta": {**role_fields, "content": piece}} if is_chat else {"text": piece}, None)
    yield render_event({"delta": {}} if is_chat else {"text": ""}, "stop")
    yield "[DONE]"


def _read_last_user_message(document: JsonDocument) -> str:
    """Return the last message of the user."""
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(entry, dict) for entry in messages):
        raise RequestError(400, 'the request has no messages; send {"messages": [{"role": "user", "content": "…"}]}')
    user_messages = [entry for entry in messages if entry.get("role") == "user"] or messages
    return _join_text_parts(user_messages[-1].get("content"))


def _join_text_parts(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content if content is not None else "")


def _read_prompt(document: JsonDocument) -> str:
    prompt = document.get("prompt")
    if isinstance(prompt, list):
        prompt = " ".join(map(str, prompt))
    if not isinstance(prompt, str):
        raise RequestError(400, 'the request has no prompt; send {"prompt": "…"}')
    return prompt
