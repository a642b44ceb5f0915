"""FolderResource: a resource that the tests of a folder share is open only while they run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.folder_resource import FolderResource

FOLDER = Path("/tests/browser")


class Openings:
    """Counts the open resources, and fails to open if `fails` is set."""

    def __init__(self) -> None:
        self.total = self.open = 0
        self.fails = False

    @contextlib.contextmanager
    def open_resource(self) -> Iterator[int]:
        self.total += 1
        with self._first_half():
            if self.fails:
                raise OSError("cannot launch")
            yield self.total

    @contextlib.contextmanager
    def _first_half(self) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


def tear_down(resource: FolderResource[int], next_path: str | None, error: Exception | None = None) -> None:
    nextitem: Any = SimpleNamespace(path=Path(next_path)) if next_path else None
    steps = resource.pytest_runtest_teardown(nextitem)
    next(steps)
    with contextlib.suppress(StopIteration):
        if error is None:
            next(steps)
        else:
            steps.throw(error)  # type: ignore[attr-defined]


def test_folder_resource_is_opened_once_for_all_tests_of_its_folder() -> None:
    openings = Openings()
    resource = FolderResource(FOLDER, openings.open_resource)
    assert resource.get() == 1
    tear_down(resource, "/tests/browser/test_pages.py")
    assert (resource.get(), openings.open) == (1, 1)


@pytest.mark.parametrize("next_path", [None, "/tests/contract/test_get.py"])
def test_folder_resource_is_closed_before_another_folder_and_at_session_end(next_path: str | None) -> None:
    openings = Openings()
    resource = FolderResource(FOLDER, openings.open_resource)
    resource.get()
    tear_down(resource, next_path)
    assert openings.open == 0
    assert (resource.get(), openings.open) == (2, 1)
    with pytest.raises(ValueError, match="of a fixture"):
        tear_down(resource, next_path, ValueError("of a fixture"))
    assert openings.open == 0


def test_failed_open_leaves_nothing_open_and_is_retried_by_the_next_test() -> None:
    openings = Openings()
    openings.fails = True
    resource = FolderResource(FOLDER, openings.open_resource)
    with pytest.raises(OSError, match="cannot launch"):
        resource.get()
    assert openings.open == 0
    openings.fails = False
    assert (resource.get(), openings.open) == (2, 1)
