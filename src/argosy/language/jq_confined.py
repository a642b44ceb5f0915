"""Asks the real jq, in workers that can be killed.

In: documents as JSON text, each with expressions to remove from it. Out: the documents without them, and sentences.
Never: waits longer than a second for one document; raises for what an expression does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from argosy.model.errors import ArgosyError, TransientError

REMOVE: Final = "argosy.language.jq_worker:remove"
Asked = tuple[bytes, tuple[str, ...]]


class Confined(Protocol):
    """A pool of workers, with a second for each call. argo: its limit too."""

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]: ...


async def remove_confined(questions: Iterable[Asked], pool: Confined) -> tuple[Mapping[Any, Any], tuple[str, ...]]:
    """Answers by question, and what was wrong. A document that jq could not treat has no answer."""
    asked = list(dict.fromkeys(questions))
    if not asked:
        return {}, ()
    payloads = [{"document": orjson.loads(text), "expressions": list(expressions)} for text, expressions in asked]
    answers: dict[Asked, Any] = {}
    faults: dict[str, None] = {}
    for question, answer in zip(asked, await pool.run_batch(REMOVE, payloads), strict=True):
        if isinstance(answer, TransientError):
            raise answer
        if isinstance(answer, ArgosyError):
            texts = " and ".join(map(repr, question[1]))
            faults[_sentence(texts, "it takes too much time or memory; write it simpler")] = None
            continue
        faults |= dict.fromkeys(_sentence(repr(text), why) for text, why in answer["faults"].items())
        answers[question] = answer["document"]
    return answers, tuple(faults)


def _sentence(expression: str, why: str) -> str:
    return f"jqPathExpressions: {expression[:200]}: {why}"
