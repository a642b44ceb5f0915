"""A stub model: says that it is a stub and repeats the prompt.

In: a prompt, or instances. Out: texts that say they come from a stub. Never: imitates a model.
"""

from __future__ import annotations

from typing import Any

from argosy.sandbox.simulators.model_server.request_reply_types import SIMULATED_NOTE

MAX_REPEATED_CHARACTERS = 400  # maximum number of repeated characters


class StubModel:
    platform = "stub"

    def __init__(self, name: str) -> None:
        self.name = name
        self.notice = f"stub of {name}: {SIMULATED_NOTE}; no model runs here."

    def predict(self, instances: list[Any]) -> list[Any]:
        return [self.notice for _ in instances]

    def complete(self, prompt: str, max_tokens: int | None) -> str:
        """Repeat the prompt; the token limit never cuts the note that this is a stub."""
        words = prompt[:MAX_REPEATED_CHARACTERS].split()
        repeated_words = words if max_tokens is None else words[: max(max_tokens - len(self.notice.split()), 0)]
        if not repeated_words:
            return self.notice
        return (
            f"{self.notice} You said: {' '.join(repeated_words)}{'…' if len(prompt) > MAX_REPEATED_CHARACTERS else ''}"
        )
