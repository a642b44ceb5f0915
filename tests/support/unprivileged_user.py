"""Run a confined program as this user, or as an ordinary one where the tests run as root.

Python's own folder may be closed to others (a home of root): then the ordinary user gets a root folder that shows it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from argosy.confine import program, room

USER = 12345
SOURCE = Path(program.__file__).parents[2]


def run_as(who: str, argv: tuple[str, ...], **options: Any) -> Any:
    """What `program.run` returned, or the error that it raised."""
    if who == "ordinary":
        return _as_ordinary(argv, options)
    try:
        return program.run(argv, **options)
    except Exception as problem:
        return problem


def _as_ordinary(argv: tuple[str, ...], options: dict[str, Any]) -> Any:
    from support.deadlines import HANG_SECONDS  # not at the top: this file also runs as a script, without tests/support

    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        order = pickle.dumps((argv, options))
        done = subprocess.run(
            [sys.executable, __file__, place], input=order, stdout=subprocess.PIPE, check=True, timeout=HANG_SECONDS,
            env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "CANARY": "sparrow"},
        )  # fmt: skip
    return pickle.loads(done.stdout)


def _become_ordinary(place: str) -> None:
    seen = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix, str(SOURCE)]
    assert room.leave(room.NEW_NAMES)
    room.move_in(place, seen, ["/proc", "/dev", tempfile.gettempdir()])
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)


if __name__ == "__main__":
    order = sys.stdin.buffer.read()
    _become_ordinary(sys.argv[1])
    arguments, options = pickle.loads(order)
    sys.stdout.buffer.write(pickle.dumps(run_as("self", arguments, **options)))
