"""Functions that misbehave on purpose; a process pool preloads this module, like an add-on."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import sys
import threading
import time

from support import syscall_attacks


def echo(payload):
    return payload


def loop(payload):
    while True:
        pass


def sleep(payload):
    time.sleep(payload)
    return payload


def burn(payload):
    """Use this many seconds of CPU time, then return."""
    start = time.process_time()
    while time.process_time() - start < payload:
        pass
    return payload


def huge_power(payload):
    return len(str(10**10**8))


def slow_regex(payload):
    return bool(re.match(r"(a+)+$", "a" * 64 + "b"))


def memory(payload):
    hoard = []
    while True:
        hoard.append(bytearray(10 << 20))


def big_allocation(payload):
    return len(bytearray(payload))


def flood(payload):
    return "x" * payload


def bomb(payload):
    """Return nested lists of ten elements, 12 levels deep; the elements of a list are one shared object."""
    value = "x" * 1000
    for _ in range(12):
        value = [value] * 10
    return value


def circle(payload):
    value = {"a": "b"}
    value["c"] = value
    return value


def raw_flood(payload):
    """Act like a compromised worker: announce an oversized response on every open descriptor."""
    for number in range(3, 64):
        try:
            os.write(number, b"\xff\xff\xff\xff" + b"x" * 1000)
        except OSError:
            pass
    time.sleep(60)


def chatter(payload):
    """Send a second response, for a call that was not made."""
    for number in range(3, 64):
        try:
            os.write(number, b"\x06\x00\x00\x00+\x00\x00\x00\x001")
        except OSError:
            pass
    return payload


def fork(payload):
    pids = []
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        pids.append(pid)
    return pids


def thread(payload):
    threading.Thread(target=time.sleep, args=(1,)).start()


def execute(payload):
    os.execv(payload, [payload])


def read(payload):
    with open(payload, "rb") as file:
        return len(file.read())


def write(payload):
    with open(payload, "w") as file:
        file.write("x")


def fill_memory_file(payload):
    number = os.memfd_create("x")
    os.write(number, b"x" * 4096)


def connect(payload):
    with socket.create_connection(tuple(payload), timeout=2):
        return "connected"


def send_datagram(payload):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"secret", tuple(payload))


def environment(payload):
    return dict(os.environ)


def places(payload):
    return {
        "cwd": os.getcwd(),
        "descriptors": [number for number in range(3, 64) if _is_open(number)],
        "stdin": os.read(0, 10).decode(),
    }


def _is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def identity(payload):
    return {"pid": os.getpid(), "ppid": os.getppid(), "uid": os.getuid(), "groups": os.getgroups()}


def kill(payload):
    os.kill(payload, signal.SIGKILL)


def leave(payload):
    os._exit(payload)


def abort(payload):
    os.abort()


def fault(payload):
    ctypes.string_at(0)


def fail(payload):
    raise ValueError(payload)


def fail_at_length(payload):
    raise ValueError("x" * payload)


def exit_politely(payload):
    sys.exit(3)


def recurse(payload):
    return recurse(payload)


def not_json(payload):
    return {1, 2}


def twice(payload):
    """Return twice the number; a string is the name of the function of this module to call."""
    if isinstance(payload, str):
        return globals()[payload](None if payload != "leave" else 1)
    return payload * 2


answer = 42


def make_call(payload):
    """Return the error number of a system call of `syscall_attacks`."""
    return syscall_attacks.make_call(payload)


def wait_for_lower_priority(payload):
    """Wait until the priority of this process changes; return the new priority."""
    initial = own_priority(None)
    while own_priority(None) == initial:
        time.sleep(0.01)
    return own_priority(None)


def own_priority(payload):
    return os.getpriority(os.PRIO_PROCESS, 0)
