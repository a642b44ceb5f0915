"""Requests, replies and errors of the model server.

In, out: plain values. Never: I/O.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

BY = "simulated by argosy"
Document = dict[str, Any]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes = b""

    def document(self) -> Document:
        """Parse the body as a JSON object. Raises RequestError."""
        try:
            found = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"the request body is not JSON ({str(error)[:200]}); send a JSON object") from None
        if not isinstance(found, dict):
            raise Refusal(400, "the request body is not a JSON object; send one, such as {}")
        return found


@dataclass(frozen=True)
class Reply:
    document: Document
    status: int = 200
    events: Iterable[str] | None = None  # instead of the document: a stream of server-sent events


class Refusal(Exception):
    """An error response."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.more = status, message, more

    def reply(self, *, is_openai: bool) -> Reply:
        if not is_openai:
            return Reply({"error": self.message, **self.more}, self.status)
        kind = "NotFoundError" if self.status == 404 else "BadRequestError" if self.status < 500 else "InternalError"
        error = {"message": self.message, "type": kind, "param": None, "code": self.status}
        return Reply({"error": error, **self.more}, self.status)


class Model(Protocol):
    """A loaded model."""

    platform: str

    def predict(self, instances: list[Any]) -> list[Any]: ...

    def complete(self, prompt: str, most: int | None) -> str:
        """Complete a prompt. Raises RequestError if it is not a text model."""


@dataclass
class Entry:
    """A served model and its state, found by the first label of its host."""

    host: str
    name: str
    state: str = "loading"  # loading, loaded or failed
    message: str = ""
    model: Model | None = None
    source: str = ""
    told: Document = field(default_factory=dict)  # the line that registered it
    # set when the model is loaded or has failed
    settled: threading.Event = field(default_factory=threading.Event)

    def ready(self) -> Model:
        """Return the loaded model. Raises RequestError while it is not loaded."""
        if self.model is not None and self.state == "loaded":
            return self.model
        why = self.message or "it is loading; try again in a moment"
        raise Refusal(503, f"model {self.name} is not ready: {why}", state=self.state, name=self.name, ready=False)
