"""Kernel keyrings: a confined run has an empty session keyring and cannot see keys of the parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from argosy.isolation import seccomp
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import list_python_paths, run
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.skipif(not seccomp.is_supported(), reason="keyrings are of Linux, on known architectures")

# Adds a key to its session keyring, then searches for it in the same process and in a forked process; with the
# argument `leave`, the forked process first joins an empty keyring as a run does.
TWO_RUNS = """
import ctypes, json, os, sys
from argosy.isolation import process_confinement, syscall_tables
libc = ctypes.CDLL(None, use_errno=True)
column = syscall_tables.MACHINES[os.uname().machine][0]
NEW, SESSION, SEARCH = 1, ctypes.c_long(-3), 10

def call(name, *arguments):
    return libc.syscall(ctypes.c_long(syscall_tables.NUMBERS[name][column]), *arguments)

def look():
    return call("keyctl", ctypes.c_long(SEARCH), SESSION, b"user", b"argosy-canary", ctypes.c_long(0)) >= 0

def in_a_run():
    read, write = os.pipe()
    if os.fork() == 0:
        left = process_confinement.join_empty_keyring() if sys.argv[1] == "leave" else True
        os.write(write, json.dumps([left, look()]).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(read, 100))

call("keyctl", ctypes.c_long(NEW), None)
added = call("add_key", b"user", b"argosy-canary", b"sparrow", ctypes.c_long(7), SESSION) >= 0
print(json.dumps({"added": added, "here": look(), "run": in_a_run()}))
"""
ADD = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
for keyring in (-1, -2, -3, -4, -5):  # of the thread, process, session, user, and the user's sessions
    if libc.syscall(number, b"user", b"argosy-canary", b"sparrow", ctypes.c_long(7), ctypes.c_long(keyring)) >= 0:
        print("added to", keyring)
"""


def find_key(how: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", TWO_RUNS, how], capture_output=True, check=True, timeout=HANG_SECONDS,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    report = json.loads(done.stdout)
    if not report["added"]:
        pytest.skip("this kernel has no keyrings, or refuses them to this user")
    assert report["here"]
    return report


def test_session_key_is_not_found_after_joining_an_empty_keyring():
    assert find_key("stay")["run"] == [True, True]  # it is found without a separate keyring
    assert find_key("leave")["run"] == [True, False]


def test_program_has_its_own_session_keyring_and_cannot_add_keys():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        command = (sys.executable, "-I", "-c", ADD)
        done = run(command, folder=Path(name), readable=list_python_paths(), limits=ProgramLimits(wall=HANG_SECONDS))
    assert (done.code, done.stdout) == (0, b""), done.stderr
    find_key("stay")
    assert done.confinement.session_keyring
