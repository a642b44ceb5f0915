"""One pool of isolated workers for all tests of a file, because starting one costs more than most calls.

In: a function that creates the pool. Out: scenes that run with it, one after another. Never: a pool that stays open
after the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from argosy.isolation import WorkerPool

Value = TypeVar("Value")


class FilePool:
    """Starts with the first scene. Use `POOL = FilePool(...)` and `close_pool = POOL.fixture()` in the test file."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._loop: asyncio.Runner | None = None
        self._pool: WorkerPool | None = None

    def run(self, scene: Callable[[WorkerPool], Awaitable[Value]]) -> Value:
        async def whole() -> Value:
            assert self._pool
            return await scene(self._pool)

        if self._loop is None:
            self._loop, self._pool = asyncio.Runner(), WorkerPool(**self._options)
        return self._loop.run(whole())

    def fixture(self) -> Any:
        @pytest.fixture(scope="module", autouse=True)
        def close_pool() -> Iterator[None]:
            yield
            if self._loop and self._pool:
                self._loop.run(self._pool.close())
                self._loop.close()
                self._loop = self._pool = None

        return close_pool
