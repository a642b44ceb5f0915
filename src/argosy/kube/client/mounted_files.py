"""Volumes that were mounted into a container.

In: a path. Out: whether it is such a volume. Never: mounts anything.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))  # of Docker, and of Podman
IN_KUBERNETES = "KUBERNETES_SERVICE_HOST"


def is_container_mount(path: Path) -> bool:
    """True for a file or a folder that is itself a mount, in a container: a secret, a Secret's subPath, an emptyDir.

    Only who deploys the container can mount there, and decides owner and mode.
    """
    return is_in_container() and is_mount(path)


def is_in_container() -> bool:
    return IN_KUBERNETES in os.environ or any(mark.exists() for mark in CONTAINER_MARKS)


def is_mount(path: Path) -> bool:
    """True if something is mounted at this very path, also a bind mount of a file of the same disk."""
    real = os.path.realpath(path)
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return os.path.ismount(real)
    return real != "/" and any(_unescape(line.split(" ")[4]) == real for line in lines)


def _unescape(field: str) -> str:
    """Spaces, tabs, line breaks and backslashes are octal there."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
