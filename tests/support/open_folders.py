"""World-readable temporary folders, because programs that run as another user cannot enter the folders of pytest.

In: nothing. Out: an empty folder that is deleted afterwards. Never: a folder that other users can write to.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
# For tests with an argument `who`, which they pass to `run_as` of support.unprivileged_user.
everyone = pytest.mark.parametrize("who", ["self", pytest.param("ordinary", marks=only_root)])


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
