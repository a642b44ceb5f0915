"""Runs the real jq in workers that can be killed.

In: documents as JSON text, each with expressions to delete from it. Out: the documents without them, and errors.
Never: gives one call more CPU than its limit (one second by default); raises for an error in an expression.
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
MAX_FAILURES: Final = 8  # documents per batch: so many can exceed a limit before the first is known


class Confined(Protocol):
    """A pool of workers."""

    async def run_batch(self, function: str, payloads: Sequence[Any], *, limits: Limits | None = None) -> list[Any]: ...


def jq_limits(seconds: float) -> Limits:
    """Limits of one call. argo: limited by wall time; here by CPU time, so that a busy machine rejects nothing."""
    usual = Limits()
    return replace(usual, cpu=seconds, wall=max(usual.wall, seconds * WALL_FACTOR))


async def remove_confined(
    questions: Iterable[Asked],
    pool: Confined,
    backoff: ScriptBackoff | None = None,
    limits: Limits | None = None,
) -> tuple[Mapping[Any, Any], tuple[str, ...]]:
    """Return results by request, and errors.

    An expression that exceeds a limit deletes nothing: it is reported, and not tried on later documents, so that one
    Application cannot hold a worker for long.
    """
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
        self._left_out: set[str] = set()  # failed before, and not tried now
        self._run: set[str] = set()
        self._too_expensive: set[str] = set()
        self.answers: dict[Asked, Any] = {}
        self.faults: dict[str, None] = {}

    def leave_out_failing(self, expressions: Iterable[str]) -> None:
        """Report the expressions that failed repeatedly, and do not try them."""
        for expression in expressions:
            if self._backoff.reason(expression) is not None:
                self._left_out.add(expression)
                self.faults[too_expensive_sentence(expression)] = None

    def remember(self) -> None:
        """Record failed expressions for a later retry, and clear those that succeeded."""
        for expression in self._too_expensive:
            self._backoff.failed(expression, TOO_EXPENSIVE)
        for expression in self._run - self._too_expensive:
            self._backoff.succeeded(expression)

    async def ask(self, questions: Sequence[Asked]) -> None:
        """Run all expressions of a document at once; one by one if that exceeds a limit."""
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
        """False if the result says that a limit was exceeded."""
        if isinstance(answer, TransientError):
            raise answer
        if isinstance(answer, ArgosyError):
            return False
        self.faults |= dict.fromkeys(fault_sentence(text, why) for text, why in answer["faults"].items())
        return True
