"""The order of the files: what takes longest begins first, so that no worker is left alone with it at the end.

In: `longest.txt`, file names in that order. Out: tests so ordered, each file's own order kept. Never: leaves one out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONGEST = HERE / "longest.txt"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {HERE / name: number for number, name in enumerate(LONGEST.read_text().split())}
    items.sort(key=lambda item: place.get(item.path, len(place)))
