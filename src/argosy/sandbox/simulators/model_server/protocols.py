"""Answers inference requests in three protocols: KServe V1, KServe V2 (Open Inference) and OpenAI.

In: a ModelRequest and a model. Out: a ModelReply, or a RequestError. Never: I/O.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from argosy.sandbox.simulators.model_server.messages import BY, Document, Entry, Refusal, Reply, Request
from argosy.sandbox.simulators.model_server.tensors import rows, tensor

BEGAN = int(time.time())
CHAT, COMPLETIONS, MODELS = "/v1/chat/completions", "/v1/completions", "/v1/models"
HEALTH = ("/health", "/v2/health/live", "/v2/health/ready", "/")


def is_openai(path: str) -> bool:
    return path in (CHAT, COMPLETIONS)


def answer(request: Request, entry: Entry) -> Reply:
    """Answer one request. Raises RequestError."""
    path = request.path
    if is_openai(path):
        _must(request, "POST")
        return _completion(request.document(), entry, is_chat=path == CHAT)
    if path == MODELS:
        entry.ready()
        return Reply({"object": "list", "data": [_card(entry)], "models": [entry.name]})
    if path in HEALTH:
        entry.ready()
        return Reply({"live": True, "ready": True, **_about(entry)})
    if path.startswith(f"{MODELS}/"):
        return _v1(request, path.removeprefix(f"{MODELS}/"), entry)
    if path.startswith("/v2/models/"):
        return _v2(request, path.removeprefix("/v2/models/"), entry)
    if path == "/v2":
        return Reply({"name": "argosy", "version": BY, "extensions": []})
    raise Refusal(404, f"path {path} not found; {paths(entry.name)}")


def paths(name: str) -> str:
    return f"use {MODELS}/{name}:predict, /v2/models/{name}/infer, {CHAT} or {COMPLETIONS}"


def _about(entry: Entry) -> Document:
    platform = entry.model.platform if entry.model else ""
    return {"name": entry.name, "platform": platform, "source": entry.source, "by": BY}


def _card(entry: Entry) -> Document:
    return {"id": entry.name, "object": "model", "created": BEGAN, "owned_by": BY}


def _must(request: Request, method: str) -> None:
    if request.method != method:
        raise Refusal(405, f"method {request.method} not allowed for {request.path}; use {method}")


def _is(name: str, entry: Entry) -> None:
    if name != entry.name:
        raise Refusal(404, f"model {name[:200]!r} not found; this server has {entry.name}")


def _v1(request: Request, rest: str, entry: Entry) -> Reply:
    name, _, verb = rest.partition(":")
    _is(name, entry)
    if not verb:
        entry.ready()
        return Reply({**_card(entry), **_about(entry), "ready": True})
    if verb != "predict":
        raise Refusal(404, f"unknown operation :{verb[:50]}; {paths(entry.name)}")
    _must(request, "POST")
    model = entry.ready()
    document = request.document()
    instances = document.get("instances", document.get("inputs"))
    if not isinstance(instances, list):
        raise Refusal(400, 'the request has no instances; send {"instances": [...]}')
    return Reply({"predictions": model.predict(instances)})


def _v2(request: Request, rest: str, entry: Entry) -> Reply:
    name, _, verb = rest.partition("/")
    _is(name, entry)
    model = entry.ready()
    if not verb:
        return Reply({"name": name, "versions": [], "platform": model.platform, "inputs": [], "outputs": []})
    if verb == "ready":
        return Reply({"name": name, "ready": True})
    if verb != "infer":
        raise Refusal(404, f"unknown operation /{verb[:50]}; {paths(entry.name)}")
    _must(request, "POST")
    document = request.document()
    found = tensor("predict", model.predict(rows(document)))
    told = {"model_name": name, "id": str(document.get("id") or uuid.uuid4())}
    return Reply({**told, "parameters": {"by": BY}, "outputs": [found]})


def _completion(document: Document, entry: Entry, *, is_chat: bool) -> Reply:
    if document.get("model"):
        _is(str(document["model"]), entry)
    model = entry.ready()
    prompt = _said(document) if is_chat else _prompt(document)
    most = document.get("max_completion_tokens") or document.get("max_tokens")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise Refusal(400, "invalid max_tokens: expected an integer above 0")
    text = model.complete(prompt, most)
    kind = "chat.completion" if is_chat else "text_completion"
    number = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}"
    told = {"id": number, "created": int(time.time()), "model": entry.name, "system_fingerprint": BY}
    if document.get("stream"):
        return Reply({}, events=_events({**told, "object": f"{kind}.chunk" if is_chat else kind}, text, is_chat))
    asked, given = len(prompt.split()), len(text.split())
    usage = {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given}
    said: Document = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
    choice = {"index": 0, **said, "logprobs": None, "finish_reason": "stop"}
    return Reply({**told, "object": kind, "choices": [choice], "usage": usage})


def _events(told: Document, text: str, is_chat: bool) -> Iterator[str]:
    def event(said: Document, end: str | None) -> str:
        return json.dumps({**told, "choices": [{"index": 0, **said, "finish_reason": end}]})

    words = text.split(" ")
    for number, word in enumerate(words):
        piece = word if number == 0 else f" {word}"
        first = {"role": "assistant"} if number == 0 else {}
        yield event({"delta": {**first, "content": piece}} if is_chat else {"text": piece}, None)
    yield event({"delta": {}} if is_chat else {"text": ""}, "stop")
    yield "[DONE]"


def _said(document: Document) -> str:
    """Return the last message of the user."""
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise Refusal(400, 'the request has no messages; send {"messages": [{"role": "user", "content": "…"}]}')
    of_user = [each for each in messages if each.get("role") == "user"] or messages
    return _text(of_user[-1].get("content"))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content if content is not None else "")


def _prompt(document: Document) -> str:
    prompt = document.get("prompt")
    if isinstance(prompt, list):
        prompt = " ".join(map(str, prompt))
    if not isinstance(prompt, str):
        raise Refusal(400, 'the request has no prompt; send {"prompt": "…"}')
    return prompt
