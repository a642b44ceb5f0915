"""The folder that a mirror is kept in.

In: its path. Out: whether it is whole; a new one in its place. Never: a moment without the old or the new one whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

SKELETON = ("HEAD", "config", "objects", "refs")


def is_there(folder: Path) -> bool:
    place = os.fspath(folder)  # asked so often that making paths would take longer than the answers
    return all(os.path.exists(f"{place}/{name}") for name in SKELETON)


def has_plain_refs(folder: Path) -> bool:
    """Whether refs are files; a git of another mind keeps them in tables."""
    return not (folder / "reftable").exists()


def read_ref(folder: Path, name: str) -> str:
    """What a ref of ours holds; empty where there is none, or where it is packed."""
    try:
        return (folder / name).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def written_at(folder: Path, name: str) -> float:
    """When a ref was written; 0 where it is packed, so that it was before the last packing."""
    try:
        return (folder / name).stat().st_mtime
    except OSError:
        return 0.0


def write_ref(folder: Path, name: str, id: str) -> None:
    """As git does it, which would take a process: to be called with the mirror's lock."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.lock")
    with beside.open("w", encoding="ascii") as file:
        file.write(f"{id}\n")
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)


def sweep(folder: Path) -> None:
    """Takes away what a killed git left: to be called with the mirror's lock, which proves that none is running."""
    pack = folder / "objects" / "pack"
    left = [
        *folder.glob("*.lock"),
        *pack.glob("tmp_*"),
        *pack.glob("*.lock"),
        *(folder / "objects").glob("*/tmp_obj_*"),
    ]
    for above, _, names in os.walk(folder / "refs"):
        left += [Path(above, name) for name in names if name.endswith(".lock")]
    for path in left:
        path.unlink(missing_ok=True)


def count_packs(folder: Path) -> int:
    return sum(1 for _ in folder.glob("objects/pack/*.pack"))


def largest_left(folder: Path) -> int:
    """The size of the largest pack that was begun and not ended."""
    return max((left.stat().st_size for left in folder.glob("objects/pack/tmp_*")), default=0)


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of the old one if nothing is raised."""
    fresh, old = folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")
    for path in (fresh, old):
        shutil.rmtree(path, ignore_errors=True)
    fresh.mkdir(mode=0o700, parents=True)
    try:
        yield fresh
        if folder.exists():
            folder.rename(old)
        fresh.rename(folder)
    finally:
        for path in (fresh, old):
            shutil.rmtree(path, ignore_errors=True)
