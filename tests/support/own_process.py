"""Runs a function of a test module in a new process.

In: the function, and arguments with an evaluable `repr`. Out: nothing, or an AssertionError with the stderr of the
process. Never: inherits the descriptors or child processes of other tests from the pytest worker.
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
