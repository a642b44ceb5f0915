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
from argosy.isolation.limit_and_confinement_types import CallLimits
from argosy.isolation.script_backoff import ScriptBackoff
from argosy.languages.jq_path_expressions import TOO_EXPENSIVE_MESSAGE, format_jq_error, format_too_expensive_error

DELETE_PATHS_FUNCTION: Final = "argosy.languages.jq_worker:delete_paths"
DeletionRequest = tuple[bytes, tuple[str, ...]]
DEFAULT_JQ_SECONDS: Final = 1.0  # argo
WALL_FACTOR: Final = 10.0
MAX_BATCH_DOCUMENTS: Final = 8  # documents per batch: so many can exceed a limit before the first is known


class JqWorkerPool(Protocol):
    """A pool of workers."""

    async def run_batch(
        self, function: str, payloads: Sequence[Any], *, limits: CallLimits | None = None
    ) -> list[Any]: ...


def build_jq_limits(seconds: float) -> CallLimits:
    """Limits of one call. argo: limited by wall time; here by CPU time, so that a busy machine rejects nothing."""
    default_limits = CallLimits()
    return replace(default_limits, cpu=seconds, wall=max(default_limits.wall, seconds * WALL_FACTOR))


async def delete_paths_confined(
    requests: Iterable[DeletionRequest],
    pool: JqWorkerPool,
    backoff: ScriptBackoff | None = None,
    limits: CallLimits | None = None,
) -> tuple[Mapping[Any, Any], tuple[str, ...]]:
    """Return results by request, and errors.

    An expression that exceeds a limit deletes nothing: it is reported, and not tried on later documents, so that one
    Application cannot hold a worker for long.
    """
    deletion = _PathDeletion(pool, backoff or ScriptBackoff(), limits or build_jq_limits(DEFAULT_JQ_SECONDS))
    by_expressions: dict[tuple[str, ...], list[DeletionRequest]] = {}
    for request in dict.fromkeys(requests):
        by_expressions.setdefault(request[1], []).append(request)
    for expressions, group_requests in by_expressions.items():
        deletion.skip_failing(expressions)
        for start in range(0, len(group_requests), MAX_BATCH_DOCUMENTS):
            await deletion.run_requests(group_requests[start : start + MAX_BATCH_DOCUMENTS])
    deletion.record_outcomes()
    return deletion.results, tuple(deletion.errors)


class _PathDeletion:
    """One run over many documents."""

    def __init__(self, pool: JqWorkerPool, backoff: ScriptBackoff, limits: CallLimits) -> None:
        self._pool, self._backoff, self._limits = pool, backoff, limits
        self._skipped: set[str] = set()  # failed before, and not tried now
        self._tried: set[str] = set()
        self._too_expensive: set[str] = set()
        self.results: dict[DeletionRequest, Any] = {}
        self.errors: dict[str, None] = {}

    def skip_failing(self, expressions: Iterable[str]) -> None:
        """Report the expressions that failed repeatedly, and do not try them."""
        for expression in expressions:
            if self._backoff.find_block_reason(expression) is not None:
                self._skipped.add(expression)
                self.errors[format_too_expensive_error(expression)] = None

    def record_outcomes(self) -> None:
        """Record failed expressions for a later retry, and clear those that succeeded."""
        for expression in self._too_expensive:
            self._backoff.record_failure(expression, TOO_EXPENSIVE_MESSAGE)
        for expression in self._tried - self._too_expensive:
            self._backoff.record_success(expression)

    async def run_requests(self, requests: Sequence[DeletionRequest]) -> None:
        """Run all expressions of a document at once; one by one if that exceeds a limit."""
        payloads = [self._build_payload(orjson.loads(text), expressions) for text, expressions in requests]
        for request, payload in zip(requests, payloads, strict=True):
            self.results[request] = payload["document"]
        pending_indexes = [index for index, payload in enumerate(payloads) if payload["expressions"]]
        batch_results = await self._run_batch([payloads[index] for index in pending_indexes]) if pending_indexes else []
        for index, result in zip(pending_indexes, batch_results, strict=True):
            request, payload = requests[index], payloads[index]
            self._tried.update(payload["expressions"])
            if self._is_successful(result):
                self.results[request] = result["document"]
            else:
                self.results[request] = await self._run_one_by_one(payload)

    async def _run_one_by_one(self, payload: dict[str, Any]) -> Any:
        document, expressions = payload["document"], payload["expressions"]
        for expression in expressions:
            if expression in self._too_expensive:
                continue
            if len(expressions) > 1:
                [result] = await self._run_batch([self._build_payload(document, (expression,))])
                if self._is_successful(result):
                    document = result["document"]
                    continue
            self._too_expensive.add(expression)
            self.errors[format_too_expensive_error(expression)] = None
        return document

    async def _run_batch(self, payloads: Sequence[Any]) -> list[Any]:
        return await self._pool.run_batch(DELETE_PATHS_FUNCTION, payloads, limits=self._limits)

    def _build_payload(self, document: Any, expressions: Iterable[str]) -> dict[str, Any]:
        skipped = self._too_expensive | self._skipped
        return {"document": document, "expressions": [text for text in expressions if text not in skipped]}

    def _is_successful(self, result: Any) -> bool:
        """False if the result says that a limit was exceeded."""
        if isinstance(result, TransientError):
            raise result
        if isinstance(result, ArgosyError):
            return False
        self.errors |= dict.fromkeys(format_jq_error(text, reason) for text, reason in result["faults"].items())
        return True
