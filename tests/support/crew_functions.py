"""Functions that tests run in a process pool."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from argosy.errors import Conflict, RenderError, UnknownRef
from argosy.isolation import LimitExceeded
from argosy.isolation.scratch_folders import create_scratch_folder
from argosy.kube.resource_key import ResourceKey

learned: list[object] = []


def add(one, other):
    return one + other


def is_imported(name):
    return name in sys.modules


def whoami():
    return os.getpid()


def learn(value):
    learned.append(value)
    return learned


def wait_at(file, seconds=60):
    """Report the process id, then sleep."""
    Path(file).write_text(str(os.getpid()))
    time.sleep(seconds)


def spin():
    while True:
        pass


def hoard(size):
    return len(bytearray(size))


def keep(size):
    learned.append(bytearray(size))
    return os.getpid()


def leave(code):
    os._exit(code)


def end_by(number):
    os.kill(os.getpid(), number)
    signal.pause()


def ask_to_end():
    sys.exit(3)


def fail_to_render():
    raise RenderError("no such file", where="overlay/kustomization.yaml")


def fail_with_an_unknown_ref():
    error = UnknownRef("there is no branch", where="repo")
    error.add_note("asked for main")
    raise error


def fail_over_a_limit():
    raise LimitExceeded("cpu", "too slow", where="check")


def fail_in_the_cluster():
    key = ResourceKey("apps", "Deployment", "default", "web")
    raise Conflict("changed", key=key, reason="Conflict", details={"a": 1})


def make_a_mistake():
    raise KeyError("name")


def make_a_mistake_that_cannot_travel():
    class Local(Exception):
        pass

    raise Local("inside")


def give_what_cannot_travel():
    return lambda: 1


def surroundings():
    return sys.stdin.read(), os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def hold_scratch_folder() -> None:
    """Use a temporary folder until the process is killed."""
    with create_scratch_folder("argosy-tree-"):
        threading.Event().wait()
