"""Requests, replies and errors of the model server.

In, out: plain values. Never: I/O.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

SIMULATED_NOTE = "simulated by argosy"
JsonDocument = dict[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    method: str
    path: str
    body: bytes = b""

    def parse_document(self) -> JsonDocument:
        """Parse the body as a JSON object. Raises RequestError."""
        try:
            document = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise RequestError(400, f"the request body is not JSON ({str(error)[:200]}); send a JSON object") from None
        if not isinstance(document, dict):
            raise RequestError(400, "the request body is not a JSON object; send one, such as {}")
        return document


@dataclass(frozen=True)
class ModelReply:
    document: JsonDocument
    status: int = 200
    events: Iterable[str] | None = None  # instead of the document: a stream of server-sent events


class RequestError(Exception):
    """An error response."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.extra_fields = status, message, more

    def to_reply(self, *, is_openai: bool) -> ModelReply:
        if not is_openai:
            return ModelReply({"error": self.message, **self.extra_fields}, self.status)
        error_type = (
            "NotFoundError" if self.status == 404 else "BadRequestError" if self.status < 500 else "InternalError"
        )
        error = {"message": self.message, "type": error_type, "param": None, "code": self.status}
        return ModelReply({"error": error, **self.extra_fields}, self.status)


class LoadedModel(Protocol):
    """A loaded model."""

    platform: str

    def predict(self, instances: list[Any]) -> list[Any]: ...

    def complete(self, prompt: str, max_tokens: int | None) -> str:
        """Complete a prompt. Raises RequestError if it is not a text model."""


@dataclass
class ModelEntry:
    """A served model and its state, found by the first label of its host."""

    host: str
    name: str
    state: str = "loading"  # loading, loaded or failed
    message: str = ""
    model: LoadedModel | None = None
    source: str = ""
    registration: JsonDocument = field(default_factory=dict)  # the line that registered it
    # set when the model is loaded or has failed
    load_finished: threading.Event = field(default_factory=threading.Event)

    def require_loaded(self) -> LoadedModel:
        """Return the loaded model. Raises RequestError while it is not loaded."""
        if self.model is not None and self.state == "loaded":
            return self.model
        reason = self.message or "it is loading; try again in a moment"
        raise RequestError(
            503, f"model {self.name} is not ready: {reason}", state=self.state, name=self.name, ready=False
        )
