"""A function of a test module, run in a process of its own.

In: the function, and arguments that `repr` can write. Out: nothing, or an AssertionError with what the process printed.
Never: descriptors or children of other tests, which the worker of pytest has besides.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.deadlines import TEST_HANG_SECONDS
from support.paths import TESTS


def run_in_own_process(function: Callable[..., None], *arguments: object) -> None:
    file, name = Path(inspect.getfile(function)), function.__name__
    path = [str(TESTS), str(file.parent)]
    script = f"import sys; sys.path[:0] = {path!r}; from {file.stem} import {name}; {name}(*{arguments!r})"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=TEST_HANG_SECONDS)
    assert done.returncode == 0, done.stderr
