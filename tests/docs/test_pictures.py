"""Pictures of the page: each is shown by a document, in both themes, and small."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "images"
SHOWN = re.compile(r'(?:src|srcset)="([^"]*images/[^"]+)"')
MOST = 120 * 1024


def list_linked_pictures() -> set[Path]:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {(page.parent / picture).resolve() for page in pages for picture in SHOWN.findall(page.read_text())}


def test_every_picture_is_shown_and_every_shown_one_is_there() -> None:
    assert list_linked_pictures() == {path.resolve() for path in FOLDER.glob("*.png")}


def test_every_picture_has_both_themes() -> None:
    names = {path.stem.rpartition("-")[0] for path in FOLDER.glob("page-*.png")}
    assert {f"{name}-{theme}" for name in names for theme in ("light", "dark")} == {
        path.stem for path in FOLDER.glob("page-*.png")
    }


def test_pictures_are_small() -> None:
    assert [path.name for path in FOLDER.glob("*.png") if path.stat().st_size > MOST] == []
