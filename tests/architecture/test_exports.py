"""Every name that a package exports exists: several packages import theirs on first use, from a table of modules."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
EXPORTING_PACKAGES = sorted(
    ".".join(file.parent.relative_to(SOURCE).parts)
    for file in SOURCE.rglob("__init__.py")
    if "__all__" in file.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("package_name", EXPORTING_PACKAGES)
def test_exported_names_exist(package_name: str) -> None:
    package = importlib.import_module(package_name)
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
