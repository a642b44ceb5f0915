"""Unit tests work in this process alone: no network, no other process. Such tests belong to `tests/component`."""

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
    """Not an Exception, so that no code under test takes it for a failure of the network."""


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
    """While a test module is imported."""
    with _guard(isinstance(collector, pytest.Module) and collector.path.is_relative_to(HERE)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """While a test and its fixtures run, those of its module too. pytest calls this for the tests of other folders."""
    with _guard(item.path.is_relative_to(HERE)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """After the last test of all, fixtures of the session end, which tests of other folders may have begun."""
    with _guard(_is_unit_test[0] and nextitem is not None):
        return (yield)
