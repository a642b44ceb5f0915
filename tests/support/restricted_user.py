"""Runs a program like in a restricted Pod: with an arbitrary user id, and write access only below HOME.

In: argv: the folder for HOME, then the program and its arguments. Out: executes that program in place of this one.
Never: returns; needs a container. Landlock takes the place of a read-only root file system.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

from argosy.isolation.landlock import build_ruleset, find_abi_version, restrict_process

USER = 1000650000  # from the range that OpenShift assigns to a namespace
NO_NEW_PRIVS = 38
FILES_ONLY = 3  # a Landlock ABI that restricts files, but not the network


def words() -> list[str]:
    """Return the command prefix that runs this script; empty if this machine does not support it."""
    if not shutil.which("unshare") or find_abi_version() < FILES_ONLY:
        return []
    prefix = ["unshare", "--user", f"--map-user={USER}", "--map-group=0"]
    works = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return [*prefix, sys.executable, __file__] if works else []


def main() -> None:
    home, *program = sys.argv[1:]
    assert os.getuid() == USER
    ctypes.CDLL(None).prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    restrict_process(build_ruleset([], FILES_ONLY, runnable=["/"], writable=[home, "/dev", "/proc"]))
    os.chdir(home)
    os.execvpe(program[0], program, {**os.environ, "HOME": home, "TMPDIR": home})


if __name__ == "__main__":
    main()
