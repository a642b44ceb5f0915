"""Fixtures for the tests of confined programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.open_folders import open_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can enter."""
    with open_folder() as path:
        yield path
