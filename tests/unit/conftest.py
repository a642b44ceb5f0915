"""Guard for unit tests: no network and no other process; tests that need them belong to `tests/component`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
SOCKETS = {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"}
HERE = Path(__file__).parent
_is_unit_test = [False]


class OutsideWorldError(BaseException):
    """Not an Exception, so that code under test does not handle it as a network failure."""


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_unit_test[0]:
        return
    if event in PROCESSES or event in SOCKETS:
        raise OutsideWorldError(f"a unit test used {event}{arguments[:2]}; move it to tests/component")


sys.addaudithook(_refuse)


@contextlib.contextmanager
def _guard(is_on: bool) -> Iterator[None]:
    before, _is_unit_test[0] = _is_unit_test[0], is_on
    try:
        yield
    finally:
        _is_unit_test[0] = before


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Guard the import of a test module."""
    with _guard(isinstance(collector, pytest.Module) and collector.path.is_relative_to(HERE)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Guard a test and its fixtures, including module fixtures. pytest also calls this for tests of other folders."""
    with _guard(item.path.is_relative_to(HERE)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Lift the guard after the last test: session fixtures end, and tests of other folders may have set them up."""
    with _guard(_is_unit_test[0] and nextitem is not None):
        return (yield)
