"""A confined program without its own root folder cannot reach Unix sockets of other processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from argosy.isolation import landlock, seccomp
from argosy.isolation.confinement_requirement import find_missing_protections
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.process_confinement import sees_only_own_unix_sockets
from argosy.isolation.untrusted_program_runner import list_python_paths
from support import weaker_kernel
from support.deadlines import HANG_SECONDS
from support.unprivileged_user import run_as

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
everyone = pytest.mark.parametrize(
    "who", ["self", pytest.param("ordinary", marks=only_root), pytest.param("apart", marks=only_root)]
)
pytestmark = pytest.mark.skipif(
    not seccomp.is_supported() or not landlock.find_abi_version(), reason="needs the filter, and Landlock"
)
LIMITS = ProgramLimits(wall=HANG_SECONDS)
ATTEMPTS = """
import json, os, socket, sys
path, answers = sys.argv[1], {}

def attempt(name, reach):
    try:
        answers[name] = reach() or "reached"
    except OSError as error:
        answers[name] = type(error).__name__

def connect(kind, suffix):
    with socket.socket(socket.AF_UNIX, kind) as channel:
        channel.connect(path + suffix)
        channel.sendall(b"taken over")

def connect_abstract():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.connect(chr(0) + path)

def send_from_pair(kind):
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with ours, theirs:
        ours.sendto(b"taken over", path + ".datagram")

def talk_in_pair(kind):
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with ours, theirs:
        ours.send(b"x")
        assert theirs.recv(1) == b"x"

attempt("stream", lambda: connect(socket.SOCK_STREAM, ""))
attempt("datagram", lambda: connect(socket.SOCK_DGRAM, ".datagram"))
attempt("abstract", connect_abstract)
attempt("datagram of a pair", lambda: send_from_pair(socket.SOCK_DGRAM))
attempt("raw of a pair", lambda: send_from_pair(socket.SOCK_RAW))
attempt("pair of streams", lambda: talk_in_pair(socket.SOCK_STREAM))
attempt("pair of packets", lambda: talk_in_pair(socket.SOCK_SEQPACKET))
print(json.dumps(answers))
"""
OUTSIDE = ("stream", "datagram", "abstract", "datagram of a pair", "raw of a pair")
PAIRS = ("pair of streams", "pair of packets")
START_WITH_UNIX_SOCKETS = """
import asyncio, os, tempfile
from pathlib import Path
from argosy.isolation import ProgramLimits
from argosy.isolation.long_running_program import ProgramAccess, start_program

async def main():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        access = ProgramAccess(needs_unix_sockets=True)
        started = await start_program(("echo", "ran"), folder=Path(name), limits=ProgramLimits(), access=access)
        ended = await started.exit_task
        print(ended.refused or started.read_output_tail().strip())

asyncio.run(main())
"""


@pytest.fixture
def agent() -> Iterator[str]:
    """The path of a socket open to everyone, with a datagram socket and an abstract one of the same name."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        path = f"{name}/agent.sock"
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
        ):
            stream.bind(path)
            datagram.bind(f"{path}.datagram")
            abstract.bind(f"\0{path}")
            for file in (path, f"{path}.datagram"):
                os.chmod(file, 0o777)
            stream.listen(8)
            abstract.listen(8)
            yield path


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_unconfined_program_reaches_every_socket(agent: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", ATTEMPTS, agent], capture_output=True, check=True, timeout=HANG_SECONDS
    )
    assert json.loads(done.stdout) == dict.fromkeys((*OUTSIDE, *PAIRS), "reached")


@everyone
def test_confined_program_reaches_no_outside_unix_socket_but_can_use_pairs(who: str, agent: str, folder: Path) -> None:
    command = (sys.executable, "-I", "-c", ATTEMPTS, agent)
    done = run_as(who, command, folder=folder, readable=list_python_paths(), limits=LIMITS)
    answers = json.loads(done.stdout)
    assert [name for name in OUTSIDE if answers[name] == "reached"] == []
    assert [answers[name] for name in PAIRS] == ["reached", "reached"]


@only_root
def test_pod_refuses_unix_sockets_and_misses_no_protection(folder: Path) -> None:
    confinement = run_as("ordinary", ("true",), folder=folder, limits=LIMITS).confinement
    assert not confinement.own_root and confinement.unix_sockets == "refused"
    assert find_missing_protections(asdict(confinement)) == []


@pytest.mark.parametrize("mode", ["required", "best-effort"])
def test_program_that_needs_unix_sockets_is_refused_without_its_own_root_if_required(mode: str) -> None:
    done = subprocess.run(
        [*weaker_kernel.command("namespaces"), sys.executable, "-c", START_WITH_UNIX_SOCKETS],
        capture_output=True, text=True, timeout=HANG_SECONDS, check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "ARGOSY_CONFINE": mode},
    )  # fmt: skip
    if mode == "required":
        assert "cannot confine Unix sockets (neither a root folder of its own" in done.stdout
    else:
        assert done.stdout == "ran\n"


@pytest.mark.parametrize(
    ("own_root", "offline", "landlock_version", "expected"),
    [
        (True, True, 0, True),
        (True, False, 6, True),
        (True, False, 5, False),  # abstract names of the shared network are reachable
        (False, True, 7, False),  # paths are reachable, whatever the network
    ],
)
def test_own_unix_sockets_only_requires_own_root_and_isolated_abstract_names(
    own_root: bool, offline: bool, landlock_version: int, expected: bool
) -> None:
    assert sees_only_own_unix_sockets(own_root, offline, landlock_version) is expected


@everyone
def test_common_programs_run_without_unix_sockets(who: str, folder: Path) -> None:
    """C libraries try a name service on a Unix socket first, and go on without it."""
    code = (
        "import asyncio, multiprocessing, os, pwd, socket, subprocess\n"
        "def look_up(find, *words):\n"
        "    try:\n        find(*words)\n"
        "    except (KeyError, socket.gaierror):\n        pass\n"
        "look_up(pwd.getpwnam, 'nobody'), look_up(pwd.getpwuid, 65534), look_up(socket.getaddrinfo, 'localhost', 80)\n"
        "asyncio.run(asyncio.create_subprocess_exec('true'))\n"
        "ours, theirs = multiprocessing.get_context('fork').Pipe()\n"
        "ours.send('x'), theirs.recv()\n"
        "for tool in (['git', 'init', '-q', '.'], ['git', 'status', '-s']):\n"
        "    subprocess.run(tool, check=True, cwd=os.environ['HOME'])\n"
        "print('done')\n"
    )
    done = run_as(
        who, (sys.executable, "-I", "-c", code), folder=folder, readable=list_python_paths(), limits=LIMITS,
        env={"GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    assert done.stdout == b"done\n", done.stderr
