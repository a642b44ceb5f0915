"""Runs an isolated program as this user, or as another user if the tests run as root.

self         the user who runs the tests
ordinary     a user who cannot create namespaces: the kernel refuses them inside a chroot
apart        a user who can create namespaces
without      root, where no user namespace can be created any more

Other users may have no access to Python's folder (a home of root): they get a root folder that contains it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from argosy.isolation import rootfs, untrusted_program_runner

USER = 12345
SOURCE = Path(untrusted_program_runner.__file__).parents[2]
_MOVE = 8192  # the kernel's MS_MOVE


def run_as(who: str, argv: tuple[str, ...], **options: Any) -> Any:
    """Return the result of `program.run`, or raise its error."""
    if who != "self":
        return _as_another(who, argv, options)
    try:
        return untrusted_program_runner.run(argv, **options)
    except Exception as problem:
        return problem


def _as_another(who: str, argv: tuple[str, ...], options: dict[str, Any]) -> Any:
    from support.deadlines import HANG_SECONDS  # not at the top: this file also runs as a script, without tests/support

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        order = pickle.dumps((argv, options))
        done = subprocess.run(
            [sys.executable, __file__, who, folder], input=order, stdout=subprocess.PIPE, check=True,
            timeout=HANG_SECONDS, env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "CANARY": "sparrow"},
        )  # fmt: skip
    return pickle.loads(done.stdout)


def _become(who: str, place: str) -> None:
    if who == "without":
        users = rootfs.create_user_namespace()
        assert users is not None
        rootfs.join_user_namespace(users)
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
        return
    visible_paths = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix, str(SOURCE)]
    assert rootfs.unshare(rootfs.CLONE_NEWNS)
    outside = os.open("/", os.O_RDONLY)
    rootfs.enter_root(place, visible_paths, ["/proc", "/dev", tempfile.gettempdir()])
    if who == "apart":
        _be_in_no_chroot(outside, place)
    os.close(outside)
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)


def _be_in_no_chroot(outside: int, place: str) -> None:
    """Leave the chroot: mount the same root folder separately and enter that mount."""
    os.fchdir(outside)
    os.chroot(".")
    os.chdir(place)
    rootfs._mount(".", "/", None, _MOVE)
    os.chroot(".")
    os.chdir("/")


if __name__ == "__main__":
    order = sys.stdin.buffer.read()
    _become(*sys.argv[1:])
    arguments, options = pickle.loads(order)
    sys.stdout.buffer.write(pickle.dumps(run_as("self", arguments, **options)))
