"""Screenshots in docs/images: each is used by a document, exists in both themes, and is small."""

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


def test_linked_pictures_are_exactly_the_files_in_the_images_folder() -> None:
    assert list_linked_pictures() == {path.resolve() for path in FOLDER.glob("*.png")}


def test_every_page_picture_has_a_light_and_a_dark_theme() -> None:
    names = {path.stem.rpartition("-")[0] for path in FOLDER.glob("page-*.png")}
    assert {f"{name}-{theme}" for name in names for theme in ("light", "dark")} == {
        path.stem for path in FOLDER.glob("page-*.png")
    }


def test_every_picture_is_at_most_120_kib() -> None:
    assert [path.name for path in FOLDER.glob("*.png") if path.stat().st_size > MOST] == []
