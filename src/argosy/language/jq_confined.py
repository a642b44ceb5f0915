"""Asks the real jq, in workers that can be killed.

In: documents as JSON text, each with expressions to remove from it. Out: the documents without them, and sentences.
Never: waits longer than a second of CPU for one expression; raises for what an expression does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from argosy.language.jq import fault_sentence, too_expensive_sentence
from argosy.model.errors import ArgosyError, TransientError

REMOVE: Final = "argosy.language.jq_worker:remove"
Asked = tuple[bytes, tuple[str, ...]]
_DOCUMENTS_AT_ONCE: Final = 8  # how many can go over a limit before the expression is known


class Confined(Protocol):
    """A pool of workers, with a second for each call. argo: its limit too."""

    async def run_batch(self, function: str, payloads: Sequence[Any]) -> list[Any]: ...


async def remove_confined(questions: Iterable[Asked], pool: Confined) -> tuple[Mapping[Any, Any], tuple[str, ...]]:
    """Answers by question, and what was wrong. An expression that goes over a limit removes nothing: it is told, and
    not tried on the documents that come later, so that one Application cannot hold a worker for long."""
    work = _Removal(pool)
    by_expressions: dict[tuple[str, ...], list[Asked]] = {}
    for question in dict.fromkeys(questions):
        by_expressions.setdefault(question[1], []).append(question)
    for group in by_expressions.values():
        for start in range(0, len(group), _DOCUMENTS_AT_ONCE):
            await work.ask(group[start : start + _DOCUMENTS_AT_ONCE])
    return work.answers, tuple(work.faults)


class _Removal:
    """One run over many documents."""

    def __init__(self, pool: Confined) -> None:
        self._pool = pool
        self._too_expensive: set[str] = set()
        self.answers: dict[Asked, Any] = {}
        self.faults: dict[str, None] = {}

    async def ask(self, questions: Sequence[Asked]) -> None:
        """All expressions at once; one by one for a document where that goes over a limit."""
        payloads = [self._payload(orjson.loads(text), expressions) for text, expressions in questions]
        answers = await self._pool.run_batch(REMOVE, payloads)
        for question, payload, answer in zip(questions, payloads, answers, strict=True):
            if self._is_done(answer):
                self.answers[question] = answer["document"]
            else:
                self.answers[question] = await self._ask_one_by_one(payload)

    async def _ask_one_by_one(self, payload: dict[str, Any]) -> Any:
        document, expressions = payload["document"], payload["expressions"]
        for expression in expressions:
            if expression in self._too_expensive:
                continue
            if len(expressions) > 1:
                [answer] = await self._pool.run_batch(REMOVE, [self._payload(document, (expression,))])
                if self._is_done(answer):
                    document = answer["document"]
                    continue
            self._too_expensive.add(expression)
            self.faults[too_expensive_sentence(expression)] = None
        return document

    def _payload(self, document: Any, expressions: Iterable[str]) -> dict[str, Any]:
        return {"document": document, "expressions": [text for text in expressions if text not in self._too_expensive]}

    def _is_done(self, answer: Any) -> bool:
        """False for an answer that says that a limit was reached."""
        if isinstance(answer, TransientError):
            raise answer
        if isinstance(answer, ArgosyError):
            return False
        self.faults |= dict.fromkeys(fault_sentence(text, why) for text, why in answer["faults"].items())
        return True
