"""Mounts a disk of a few megabytes, and fills it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DISK_BYTES = 6 * 1024 * 1024


@contextmanager
def mounted_disk(folder: Path) -> Iterator[Path]:
    """Mount a small tmpfs; skip the test if the user is not allowed to."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs the right to mount one: run this as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_disk(folder: Path) -> Path:
    """Fill the disk completely; return the file whose removal frees the space."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            while True:
                try:
                    if not file.write(bytes(size)):
                        break
                except OSError:
                    break
    return ballast
