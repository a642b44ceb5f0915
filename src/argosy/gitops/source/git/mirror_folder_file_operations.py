"""The folder of a mirror: checks, internal refs, cleanup and atomic replacement.

In: its path. Out: its state; a new folder in its place. Never: leaves neither the old nor the new folder complete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

REQUIRED_NAMES = ("HEAD", "config", "objects", "refs")


def is_repository(folder: Path) -> bool:
    folder_path = os.fspath(folder)  # called so often that building Path objects would dominate
    return all(os.path.exists(f"{folder_path}/{name}") for name in REQUIRED_NAMES)


def has_plain_refs(folder: Path) -> bool:
    """True if refs are files; False for the reftable format."""
    return not (folder / "reftable").exists()


def read_ref(folder: Path, name: str) -> str:
    """Return the value of an internal ref; empty if it does not exist or is packed."""
    try:
        return (folder / name).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def ref_mtime(folder: Path, name: str) -> float:
    """Return the mtime of a ref; 0 if it is packed, that is older than the last compaction."""
    try:
        return (folder / name).stat().st_mtime
    except OSError:
        return 0.0


def write_ref(folder: Path, name: str, id: str) -> None:
    """Write a ref as git does, without starting a process. The caller must hold the mirror's lock."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lock_path = path.with_name(f"{path.name}.lock")
    with lock_path.open("w", encoding="ascii") as file:
        file.write(f"{id}\n")
        file.flush()
        os.fsync(file.fileno())
    lock_path.rename(path)


def delete_leftovers(folder: Path) -> None:
    """Delete files that a killed git left. The caller must hold the mirror's lock, so that no git is running."""
    pack = folder / "objects" / "pack"
    leftovers = [
        *folder.glob("*.lock"),
        *pack.glob("tmp_*"),
        *pack.glob("*.lock"),
        *(folder / "objects").glob("*/tmp_obj_*"),
    ]
    for parent, _, names in os.walk(folder / "refs"):
        leftovers += [Path(parent, name) for name in names if name.endswith(".lock")]
    for path in leftovers:
        path.unlink(missing_ok=True)


def count_packs(folder: Path) -> int:
    return sum(1 for _ in folder.glob("objects/pack/*.pack"))


def largest_incomplete_pack(folder: Path) -> int:
    """Return the size of the largest incomplete pack."""
    return max((pack.stat().st_size for pack in folder.glob("objects/pack/tmp_*")), default=0)


@contextlib.contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to fill; it replaces the old one unless an exception is raised."""
    new, old = folder.with_name(f"{folder.name}.new"), folder.with_name(f"{folder.name}.old")
    for path in (new, old):
        shutil.rmtree(path, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    try:
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        for path in (new, old):
            shutil.rmtree(path, ignore_errors=True)
