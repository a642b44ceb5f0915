"""Several streams as one: nothing is lost, nothing waits for ever, nothing goes on unread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from argosy.gitops.application_client.merged_streams import merge_streams
from support.deadlines import HANG_SECONDS
from support.loop_clock import turns


async def numbers(most: int, ended: list[int], pause: float = 0.0) -> AsyncGenerator[int, None]:
    try:
        for number in range(most):
            yield number
            if pause:
                await asyncio.sleep(pause)
    finally:
        ended.append(most)


async def test_all_that_came_is_told_and_the_last_stream_ends_it() -> None:
    ended: list[int] = []
    merged_numbers = [
        number async for batch in merge_streams([numbers(3, ended), numbers(5, ended)]) for number in batch
    ]
    assert sorted(merged_numbers) == [0, 0, 1, 1, 2, 2, 3, 4] and sorted(ended) == [3, 5]


async def test_who_leaves_while_more_waits_than_has_room_ends_every_stream() -> None:
    ended: list[int] = []
    merged = merge_streams([numbers(10_000 + number, ended) for number in range(20)], max_queued=10)
    assert await anext(merged)
    await turns()  # all of them wait for room by now
    async with asyncio.timeout(HANG_SECONDS):
        await merged.aclose()
    assert len(ended) == 20


async def test_an_error_that_no_stream_expected_is_the_readers() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("unheard of")

    with pytest.raises(ValueError, match="unheard of"):
        [batch async for batch in merge_streams([broken()])]
