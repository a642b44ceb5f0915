"""What takes long and shows a corner: `make prove` runs it, `make test` names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from wiped_server import IS_ASKED_FOR

Test = TypeVar("Test", bound=Callable[..., object])


# For one row of several: `pytest.param(…, marks=IN_FULL)`.
IN_FULL = [pytest.mark.prove, pytest.mark.skipif(not IS_ASKED_FOR, reason="it takes long; make prove runs it")]


def in_full(test: Test) -> Test:
    for mark in IN_FULL:
        test = mark(test)
    return test
