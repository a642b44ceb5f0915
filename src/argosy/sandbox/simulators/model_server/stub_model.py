"""A stub model: says that it is a stub and repeats the prompt.

In: a prompt, or instances. Out: texts that say they come from a stub. Never: imitates a model.
"""

from __future__ import annotations

from typing import Any

from argosy.sandbox.simulators.model_server.messages import BY

MOST_REPEATED = 400  # maximum number of repeated characters


class Stub:
    platform = "stub"

    def __init__(self, name: str) -> None:
        self.name = name
        self.said = f"stub of {name}: {BY}; no model runs here."

    def predict(self, instances: list[Any]) -> list[Any]:
        return [self.said for _ in instances]

    def complete(self, prompt: str, most: int | None) -> str:
        """Repeat the prompt; the token limit never cuts the note that this is a stub."""
        words = prompt[:MOST_REPEATED].split()
        left = words if most is None else words[: max(most - len(self.said.split()), 0)]
        if not left:
            return self.said
        return f"{self.said} You said: {' '.join(left)}{'…' if len(prompt) > MOST_REPEATED else ''}"
