"""Retries of calls to a cluster that is unreachable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from argosy.errors import Forbidden
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable
from argosy.kube.controller.startup_retry import UNREACHABLE_BACKOFF, retry_until_reachable

Eventually = Callable[[Callable[[], object]], Awaitable[None]]
pytestmark = pytest.mark.anyio


async def test_unreachable_cluster_is_retried_until_it_answers(clock: Any, eventually: Eventually) -> None:
    answers = [
        ApiServerUnavailable("cannot be reached"),
        ApiServerUnavailable("is starting", code=503),
        ApiServerUnavailable("no answer in time"),
    ]

    async def ask() -> str:
        if answers:
            raise answers.pop(0)
        return "here"

    asking = asyncio.create_task(retry_until_reachable(ask, clock))
    for left in (2, 1, 0):
        await eventually(lambda left=left: len(answers) == left and clock.waits())
        assert not asking.done()
        clock.advance(UNREACHABLE_BACKOFF.max_seconds)
    assert await asking == "here"


@pytest.mark.parametrize("said", [Forbidden("you may not"), ApiServerNotTrusted("its certificate is not trusted")])
async def test_forbidden_and_untrusted_errors_are_raised_at_once(clock: Any, said: Exception) -> None:
    async def ask() -> None:
        raise said

    with pytest.raises(type(said)):
        await retry_until_reachable(ask, clock)
