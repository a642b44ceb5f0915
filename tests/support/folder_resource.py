"""A costly resource that all tests of a folder share, such as a browser or a real API server.

In: a folder, and a function that opens the resource. Out: the resource, opened for the first test that uses it and
closed when the next test is in another folder. Never: leaves a resource open if opening it failed halfway.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import pytest

Resource = TypeVar("Resource")


class FolderResource(Generic[Resource]):
    """Register it as a plugin in `pytest_configure` of the folder's conftest.py."""

    def __init__(self, folder: Path, open_resource: Callable[[], contextlib.AbstractContextManager[Resource]]) -> None:
        self._folder, self._open_resource = folder, open_resource
        self._stack = contextlib.ExitStack()
        self._resources: list[Resource] = []  # the resource while it is open, else empty

    def get(self) -> Resource:
        if not self._resources:
            self._resources.append(self._stack.enter_context(self._open_resource()))
        return self._resources[0]

    def close(self) -> None:
        self._resources.clear()
        self._stack.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Iterator[None]:
        try:
            return (yield)
        finally:
            if nextitem is None or not nextitem.path.is_relative_to(self._folder):
                self.close()
