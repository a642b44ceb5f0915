"""Confined programs: results, environment, isolation, limits and cleanup, run as this user and as an ordinary user."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.isolation import LimitExceeded, RefusedError, landlock, seccomp
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.untrusted_program_runner import build_module_command, list_python_paths, run
from support.deadlines import HANG_SECONDS, wait_until
from support.processes import is_running
from support.unprivileged_user import SOURCE, run_as

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
ordinary = pytest.param("ordinary", marks=[only_root, pytest.mark.tier("all")])
everyone = pytest.mark.parametrize("who", ["self", ordinary])
everyone_at_once = pytest.mark.parametrize("who", ["self", pytest.param("ordinary", marks=only_root)])
needs_landlock = pytest.mark.skipif(landlock.find_abi_version() == 0, reason="this kernel has no Landlock")
needs_landlock_tcp = pytest.mark.skipif(
    landlock.find_abi_version() < 4, reason="this kernel's Landlock cannot refuse TCP"
)
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines more than by rlimits")
pytestmark = needs_linux

SHORT = ProgramLimits(wall=HANG_SECONDS)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter; pytest makes its own temporary folders private at session start."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def folder(place: Path) -> Path:
    (place / "folder").mkdir()
    (place / "folder" / "given.txt").write_text("given\n")
    return place / "folder"


def shell(who: str, folder: Path, script: str, **options):
    return run_as(who, ("sh", "-c", script), folder=folder, **{"limits": SHORT, **options})


def python(who: str, folder: Path, code: str, **options):
    command = (sys.executable, "-I", "-c", code)
    return run_as(who, command, folder=folder, readable=list_python_paths(), **{"limits": SHORT, **options})


@everyone_at_once
def test_run_returns_output_and_exit_code(who, folder):
    done = shell(who, folder, "cat given.txt -; echo problem >&2; exit 3", stdin=b"told\n")
    assert (done.code, done.stdout, done.stderr) == (3, b"given\ntold\n", b"problem\n")


@everyone
def test_signal_gives_a_negative_exit_code(who, folder):
    assert shell(who, folder, "kill -SEGV $$").code == -signal.SIGSEGV


@everyone
def test_program_environment_has_only_given_and_default_variables(who, folder, monkeypatch):
    monkeypatch.setenv("CANARY", "sparrow")
    done = run_as(who, ("env",), folder=folder, env={"GIVEN": "1"}, limits=SHORT)
    names = {line.partition(b"=")[0] for line in done.stdout.splitlines()}
    assert names == {b"GIVEN", b"HOME", b"LANG", b"PATH", b"TMPDIR"}


@everyone
def test_scratch_folder_is_home_and_the_only_writable_folder(who, folder):
    done = shell(
        who, folder, 'echo x >"$HOME/a" && cat "$HOME/a"; echo y >here; echo z >/usr/share/z; echo n >/dev/null'
    )
    assert done.stdout == b"x\n"
    assert done.stderr.count(b"\n") == 2
    assert not (folder / "here").exists() and not Path("/usr/share/z").exists()


def test_given_scratch_folder_keeps_written_files(folder, place):
    scratch = place / "kept"
    scratch.mkdir()
    run(("sh", "-c", "echo x >$HOME/a"), folder=folder, scratch=scratch)
    assert (scratch / "a").read_bytes() == b"x\n"


@everyone
@needs_landlock
@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        pytest.param("/etc/hostname", marks=pytest.mark.tier("all")),
        pytest.param("/proc/self/environ", marks=pytest.mark.tier("all")),
        pytest.param("/proc/1/environ", marks=pytest.mark.tier("all")),
        "CANARY",
        "PARENT",
    ],
)
def test_files_outside_the_folder_cannot_be_read(who, folder, place, file):
    canary = place / "canary"
    canary.write_text("sparrow")
    canary.chmod(0o644)
    at = {"CANARY": str(canary), "PARENT": f"/proc/{os.getpid()}/environ"}.get(file, file)
    done = shell(who, folder, f"cat {at}")
    assert done.code == 1 and done.stdout == b"" and done.stderr


@everyone
@needs_landlock
def test_folders_outside_cannot_be_listed(who, folder):
    assert shell(who, folder, "ls / ; ls /tmp; ls ..").stdout == b""


@everyone_at_once
@needs_landlock_tcp
def test_program_cannot_connect_to_a_server(who, folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 60); print('reached')"
        )
        done = python(who, folder, code)
    assert done.code == 1 and b"reached" not in done.stdout
    assert b"PermissionError" in done.stderr or b"unreachable" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program another network")
def test_program_of_root_has_an_empty_network_and_runs_as_nobody(folder):
    done = shell("self", folder, "id -u")
    assert done.stdout == b"65534\n"
    assert (done.confinement.network, done.confinement.uid, done.confinement.missing) == ("none", 65534, ())


UDP = """
import socket
try:
    channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    channel.connect(("127.0.0.1", 9))
    print("reached")
except OSError:
    print("refused")
"""
AS_ANOTHER = """
import pathlib, sys
from argosy.isolation.untrusted_program_runner import list_python_paths, run
done = run((sys.executable, "-I", "-c", sys.argv[1]), folder=pathlib.Path("/usr/share"), readable=list_python_paths())
print(done.stdout.decode().strip(), done.confinement.network, len(done.confinement.missing))
"""
SYSTEM_PYTHON = "/usr/bin/python3"


def _another_user_can_run_it() -> bool:
    """True if run as root, with a system Python 3.11 or newer and sources that other users can read."""
    try:
        code = "import sys, argosy.isolation.untrusted_program_runner; sys.exit(sys.version_info < (3, 11))"
        return _as_another("-c", code).returncode == 0
    except OSError:
        return False


def _as_another(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SYSTEM_PYTHON, *arguments], user=12345, group=12345, extra_groups=[], cwd="/", text=True, capture_output=True,
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}, timeout=HANG_SECONDS, check=False,
    )  # fmt: skip


@pytest.mark.tier("all")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_program_of_ordinary_user_has_empty_network_or_reports_it_missing():
    if not _another_user_can_run_it():
        pytest.skip(f"{SYSTEM_PYTHON} or the sources are not open to another user")
    output = _as_another("-c", AS_ANOTHER, UDP).stdout.strip()
    without = "refused no-sockets" if seccomp.is_supported() else "reached no-tcp"
    assert output == "refused none 0" or (output.startswith(without) and not output.endswith(" 0"))


@everyone
def test_result_reports_the_active_confinement(who, folder):
    force = shell(who, folder, "true").confinement
    assert force.started and force.no_new_privs and force.landlock == landlock.find_abi_version()
    assert force.network == "none" or any("network" in protection for protection in force.missing)


@everyone
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep 100", marks=pytest.mark.tier("all")),
        "sleep 100 & wait",
        "trap '' TERM HUP INT; while :; do sleep 1; done",
    ],
)
def test_endless_program_is_killed_at_the_wall_limit(who, folder, script):
    problem = shell(who, folder, script, limits=ProgramLimits(wall=1))
    assert isinstance(problem, LimitExceeded) and problem.limit == "wall"


ESCAPEE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        open(os.environ["HOME"] + "/beat", "w").write("x")
        while True:
            time.sleep(0.01)
            open(os.environ["HOME"] + "/beat", "a").write("x")
    os._exit(0)
while not os.path.exists(os.environ["HOME"] + "/beat"):
    time.sleep(0.01)
{then}
"""


FLOOD = "sys.stdout.write('x' * (2 << 20))\nsys.stdout.flush()\ntime.sleep(100)"


@everyone
@pytest.mark.parametrize(
    "then", [pytest.param("", id="ends", marks=pytest.mark.tier("all")), pytest.param(FLOOD, id="is ended")]
)
def test_daemonized_process_is_killed_with_the_run(who, folder, place, then):
    scratch = place / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    limits = ProgramLimits(wall=HANG_SECONDS, output=1 << 20)
    marker = uuid.uuid4().hex
    problem = python(who, folder, f"# {marker}\n{ESCAPEE.format(then=then)}", scratch=scratch, limits=limits)
    assert isinstance(problem, LimitExceeded) == bool(then)
    assert (scratch / "beat").exists(), "it has hidden"
    assert not [pid for pid in _all_processes() if marker in _command(pid) and is_running(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


OUTER = """
import pathlib, sys
from argosy.isolation.untrusted_program_runner import run
folder, scratch = map(pathlib.Path, sys.argv[1:])
run(("sh", "-c", "echo $HOME >$HOME/up; sleep 99"), folder=folder, scratch=scratch, disposable=(folder,))
"""


def test_killed_parent_leaves_no_process_and_no_temporary_folder(folder, place):
    scratch = place / "scratch"
    scratch.mkdir()
    (place / "tmp").mkdir()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(place / "tmp")}
    outer = subprocess.Popen([sys.executable, "-c", OUTER, folder, scratch], env=env)
    up = scratch / "up"
    wait_until(lambda: up.exists() and up.read_text())
    pids = [outer.pid]
    for pid in pids:
        pids += [child for child in _all_processes() if _parent(child) == pid]
    outer.kill()
    outer.wait()
    assert len(pids) > 2
    wait_until(lambda: not any(map(is_running, pids)))
    wait_until(lambda: not folder.exists() and not list((place / "tmp").iterdir()))


def _all_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


FORK_BOMB = """
import os
forked, refused = os.environ["HOME"] + "/forked", os.environ["HOME"] + "/refused"
while True:
    try:
        os.fork()
        open(forked, "a").write("x")
    except OSError:
        open(refused, "w").close()
"""


@everyone
def test_fork_bomb_is_killed(who, folder, place):
    scratch = place / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    wall = 0.4
    while not (scratch / "refused").exists():  # on a busy machine it may end before a fork is refused
        assert wall < HANG_SECONDS, "no fork was refused"
        problem = python(who, folder, FORK_BOMB, scratch=scratch, limits=ProgramLimits(wall=wall, processes=8))
        assert isinstance(problem, LimitExceeded) and problem.limit == "wall"
        assert not (scratch / "forked").exists() or len((scratch / "forked").read_text()) < 200
        wall *= 2


@everyone
def test_output_over_the_limit_raises_limit_exceeded(who, folder):
    problem = run_as(who, ("yes",), folder=folder, limits=ProgramLimits(wall=HANG_SECONDS, output=1 << 20))
    assert isinstance(problem, LimitExceeded) and problem.limit == "output"


@everyone
def test_only_the_end_of_large_stderr_is_kept(who, folder):
    done = shell(who, folder, "yes | head -c 3000000 >&2; echo last >&2")
    assert done.stderr.endswith(b"last\n") and len(done.stderr) <= 64 << 10


SHARED = """
import mmap
x = []
while True:
    x.append(mmap.mmap(-1, 1 << 22))
    x[-1].write(b"x" * (1 << 22))
"""
MANY = """
import os, time
for _ in range(9):
    if not os.fork():
        x = bytearray(30 << 20)
        time.sleep(100)
time.sleep(100)
"""
MEMORY = {
    "of one process": "x = []\nwhile True:\n    x.append(bytearray(1 << 20))",
    "that is shared": SHARED,
    "of many processes": MANY,
}


@everyone
@pytest.mark.parametrize("code", MEMORY.values(), ids=MEMORY)
def test_memory_over_the_limit_raises_limit_exceeded(who, folder, code):
    problem = python(who, folder, code, limits=ProgramLimits(memory=128 << 20, wall=HANG_SECONDS))
    assert isinstance(problem, LimitExceeded) and problem.limit == "memory"


@everyone
def test_cpu_over_the_limit_raises_limit_exceeded(who, folder):
    problem = shell(who, folder, "while :; do :; done", limits=ProgramLimits(cpu=1, wall=HANG_SECONDS))
    assert isinstance(problem, LimitExceeded) and problem.limit == "cpu"


@everyone
@pytest.mark.parametrize(
    "script",
    ["head -c 9000000 /dev/zero >$HOME/a", "for i in 1 2 3; do head -c 3000000 /dev/zero >$HOME/$i; done; sleep 1000"],
)
def test_scratch_over_the_limit_raises_limit_exceeded(who, folder, script):
    problem = shell(who, folder, script, limits=ProgramLimits(scratch=4 << 20, wall=HANG_SECONDS))
    assert isinstance(problem, LimitExceeded) and problem.limit == "scratch"


@pytest.mark.tier("all")
@everyone
def test_argosy_module_runs_confined(who, folder):
    done = run_as(
        who, build_module_command("argosy", "version"), folder=folder, readable=list_python_paths(), limits=SHORT
    )
    assert (done.code, done.stderr) == (0, b"")
    assert b"argosy" in done.stdout


@everyone
def test_script_runs_with_its_interpreter(who, folder):
    script = folder / "tool.sh"
    script.write_text("#!/bin/sh\necho from the script $1\n")
    script.chmod(0o755)
    assert run_as(who, (str(script), "it"), folder=folder, limits=SHORT).stdout == b"from the script it\n"


def test_missing_program_raises_refused_error_with_its_name(folder):
    for name in ("no-such-program", "/no/such/program", str(folder)):
        with pytest.raises(RefusedError, match=f"{name}: program not found"):
            run((name,), folder=folder)


def test_broken_executable_raises_refused_error(folder):
    broken = folder / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    with pytest.raises(RefusedError, match="cannot be started"):
        run((str(broken),), folder=folder)


def test_program_limit_of_zero_raises_value_error():
    with pytest.raises(ValueError, match="memory"):
        ProgramLimits(memory=0)
