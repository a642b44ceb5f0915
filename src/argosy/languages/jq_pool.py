"""Asks the real jq, in workers that can be killed.

In: documents as JSON text, each with expressions to remove from it. Out: the documents without them, and sentences.
Never: gives one call more CPU than its limit, a second unless told otherwise; raises for what an expression does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import orjson

from argosy.errors import ArgosyError, TransientError
from argosy.isolation.backoff import ScriptBackoff
from argosy.isolation.limits import Limits
from argosy.languages.jq import TOO_EXPENSIVE, fault_sentence, too_expensive_sentence

REMOVE: Final = "argosy.languages.jq_worker:remove"
Asked = tuple[bytes, tuple[str, ...]]
DEFAULT_JQ_SECONDS: Final = 1.0  # argo
WALL_FACTOR: Final = 10.0
MAX_FAILURES: Final = 8  # documents that are asked about at once: so many can go over a limit before that is known


class Confined(Protocol):
    """A pool of workers."""

    async def run_batch(self, function: str, payloads: Sequence[Any], *, limits: Limits | None = None) -> list[Any]: ...


def jq_limits(seconds: float) -> Limits:
    """Limits of one call. argo: by its time on the clock; here by its CPU, so that a busy machine refuses nothing."""
    usual = Limits()
    return replace(usual, cpu=seconds, wall=max(usual.wall, seconds * WALL_FACTOR))


async def remove_confined(
    questions: Iterable[Asked],
    pool: Confined,
    backoff: ScriptBackoff | None = None,
    limits: Limits | None = None,
) -> tuple[Mapping[Any, Any], tuple[str, ...]]:
    """Answers by question, and what was wrong. An expression that goes over a limit removes nothing: it is told, and
    not tried on the documents that come later, so that one Application cannot hold a worker for long."""
    work = _Removal(pool, backoff or ScriptBackoff(), limits or jq_limits(DEFAULT_JQ_SECONDS))
    by_expressions: dict[tuple[str, ...], list[Asked]] = {}
    for question in dict.fromkeys(questions):
        by_expressions.setdefault(question[1], []).append(question)
    for expressions, group in by_expressions.items():
        work.leave_out_failing(expressions)
        for start in range(0, len(group), MAX_FAILURES):
            await work.ask(group[start : start + MAX_FAILURES])
    work.remember()
    return work.answers, tuple(work.faults)


class _Removal:
    """One run over many documents."""

    def __init__(self, pool: Confined, backoff: ScriptBackoff, limits: Limits) -> None:
        self._pool, self._backoff, self._limits = pool, backoff, limits
        self._left_out: set[str] = set()  # these failed before, and are not tried now
        self._run: set[str] = set()
        self._too_expensive: set[str] = set()
        self.answers: dict[Asked, Any] = {}
        self.faults: dict[str, None] = {}

    def leave_out_failing(self, expressions: Iterable[str]) -> None:
        """Tell of the expressions that failed again and again, and do not try them."""
        for expression in expressions:
            if self._backoff.reason(expression) is not None:
                self._left_out.add(expression)
                self.faults[too_expensive_sentence(expression)] = None

    def remember(self) -> None:
        """An expression that failed is tried again later; one that did not is no longer known to fail."""
        for expression in self._too_expensive:
            self._backoff.failed(expression, TOO_EXPENSIVE)
        for expression in self._run - self._too_expensive:
            self._backoff.succeeded(expression)

    async def ask(self, questions: Sequence[Asked]) -> None:
        """All expressions at once; one by one for a document where that goes over a limit."""
        payloads = [self._payload(orjson.loads(text), expressions) for text, expressions in questions]
        for question, payload in zip(questions, payloads, strict=True):
            self.answers[question] = payload["document"]
        asked = [place for place, payload in enumerate(payloads) if payload["expressions"]]
        answers = await self._run_batch([payloads[place] for place in asked]) if asked else []
        for place, answer in zip(asked, answers, strict=True):
            question, payload = questions[place], payloads[place]
            self._run.update(payload["expressions"])
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
                [answer] = await self._run_batch([self._payload(document, (expression,))])
                if self._is_done(answer):
                    document = answer["document"]
                    continue
            self._too_expensive.add(expression)
            self.faults[too_expensive_sentence(expression)] = None
        return document

    async def _run_batch(self, payloads: Sequence[Any]) -> list[Any]:
        return await self._pool.run_batch(REMOVE, payloads, limits=self._limits)

    def _payload(self, document: Any, expressions: Iterable[str]) -> dict[str, Any]:
        left_out = self._too_expensive | self._left_out
        return {"document": document, "expressions": [text for text in expressions if text not in left_out]}

    def _is_done(self, answer: Any) -> bool:
        """False for an answer that says that a limit was reached."""
        if isinstance(answer, TransientError):
            raise answer
        if isinstance(answer, ArgosyError):
            return False
        self.faults |= dict.fromkeys(fault_sentence(text, why) for text, why in answer["faults"].items())
        return True
