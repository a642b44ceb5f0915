"""The files that the walks of ARCHITECTURE.md pass through exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "argosy"
CELL = re.compile(r"(?<!\\)\|")
FILE = re.compile(r"`([\w/]+\.py)`")


def list_files(cell: str) -> Iterator[str]:
    """List the files of a cell; a name without a known folder is in the folder of the name before it."""
    folder = ""
    for name in FILE.findall(cell):
        path = name if (SOURCE / name.partition("/")[0]).is_dir() and "/" in name else f"{folder}/{name}"
        folder = path.rpartition("/")[0]
        yield path


def list_files_of_walks(page: str) -> Iterator[str]:
    column = None
    for line in page.splitlines():
        cells = [cell.strip() for cell in CELL.split(line.strip("|"))]
        if not line.startswith("|"):
            column = None
        elif cells[0] == "step":
            column = next(index for index, cell in enumerate(cells) if cell in ("files", "module"))
        elif column is not None:
            yield from list_files(cells[column])


def test_files_of_the_walks_exist() -> None:
    files = list(list_files_of_walks((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    assert len(files) > 100
    assert [name for name in files if not (SOURCE / name).is_file()] == []


def test_name_without_folder_is_in_the_folder_of_the_name_before() -> None:
    page = "| step | files | before |\n|---|---|---|\n| 1 | **`kube/client/auth.py`**, `a.py`, `b/c.py` | `old.py` |\n"
    assert list(list_files_of_walks(page)) == ["kube/client/auth.py", "kube/client/a.py", "kube/client/b/c.py"]
