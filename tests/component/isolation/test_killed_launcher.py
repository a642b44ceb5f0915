"""A program does not start if its launcher is killed during the start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.isolation import confined_program_launcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces of processes")
FIRST = """
import os, sys
from argosy.isolation import confined_program_launcher as launcher
launcher.process_confinement.exit_with_parent = lambda parent: None  # it was killed before this
launcher._become_program = lambda order, report: os._exit(0 if open(sys.argv[2], "w") else 1)
launcher._run_as_init({}, int(sys.argv[1]))
"""


@pytest.mark.parametrize("is_alive", [True, False])
def test_program_starts_only_if_its_launcher_is_alive(tmp_path, is_alive):
    """The init of a PID namespace cannot see its parent; it checks if its report pipe still has a reader."""
    started = tmp_path / "started"
    ours, child_end = os.pipe()
    if not is_alive:
        os.close(ours)
    source = Path(confined_program_launcher.__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", FIRST, str(child_end), str(started)],
        pass_fds=[child_end],
        env={"PYTHONPATH": str(source)},
        check=False,
    )
    assert started.exists() == is_alive
    os.close(child_end)
    if is_alive:
        os.close(ours)
