"""Unit tests work in this process alone: no network, no other process. Such tests belong to `tests/component`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

PROCESSES = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
SOCKETS = {"socket.connect", "socket.bind", "socket.getaddrinfo"}
_is_unit_test = [False]


class OutsideWorldError(BaseException):
    """Not an Exception, so that no code under test takes it for a failure of the network."""


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if not _is_unit_test[0]:
        return
    if event in PROCESSES or event in SOCKETS:
        raise OutsideWorldError(f"a unit test used {event}{arguments[:2]}; move it to tests/component")


sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    _is_unit_test[0] = True
    yield
    _is_unit_test[0] = False
