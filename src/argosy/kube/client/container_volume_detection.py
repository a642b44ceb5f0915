"""Detects volumes that are mounted into a container.

In: a path. Out: True if it is such a volume. Never: mounts anything.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTINFO_PATH = Path("/proc/self/mountinfo")
CONTAINER_MARKER_FILES = (Path("/.dockerenv"), Path("/run/.containerenv"))  # created by Docker and Podman
KUBERNETES_HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"


def is_container_mount(path: Path) -> bool:
    """True for a file or folder that is itself a mount in a container: a secret, a subPath of a Secret, an emptyDir.

    Only the person who deploys the container can mount there, and chooses owner and mode.
    """
    return is_in_container() and is_mount(path)


def is_in_container() -> bool:
    return KUBERNETES_HOST_VARIABLE in os.environ or any(mark.exists() for mark in CONTAINER_MARKER_FILES)


def is_mount(path: Path) -> bool:
    """True if this path is a mount point, including a bind mount of a file on the same disk."""
    real = os.path.realpath(path)
    try:
        lines = MOUNTINFO_PATH.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return os.path.ismount(real)
    return real != "/" and any(_unescape(line.split(" ")[4]) == real for line in lines)


def _unescape(field: str) -> str:
    """Decode octal escapes: mountinfo escapes spaces, tabs, line breaks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
