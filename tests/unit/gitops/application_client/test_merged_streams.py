"""Tests merging several async streams into one without loss, deadlock or leaked streams."""

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


async def test_all_items_arrive_and_the_merge_ends_with_the_last_stream() -> None:
    ended: list[int] = []
    merged_numbers = [
        number async for batch in merge_streams([numbers(3, ended), numbers(5, ended)]) for number in batch
    ]
    assert sorted(merged_numbers) == [0, 0, 1, 1, 2, 2, 3, 4] and sorted(ended) == [3, 5]


async def test_closing_the_merge_ends_all_streams_if_queue_is_full() -> None:
    ended: list[int] = []
    merged = merge_streams([numbers(10_000 + number, ended) for number in range(20)], max_queued=10)
    assert await anext(merged)
    await turns()  # every stream is now blocked on the full queue
    async with asyncio.timeout(HANG_SECONDS):
        await merged.aclose()
    assert len(ended) == 20


async def test_unexpected_stream_error_reaches_the_reader() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("unheard of")

    with pytest.raises(ValueError, match="unheard of"):
        [batch async for batch in merge_streams([broken()])]
