"""Fixtures of the tests of middleware: one installation serves all tests of a module."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"
