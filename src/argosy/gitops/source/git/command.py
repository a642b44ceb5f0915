"""Runs git with a fixed environment and safe settings.

In: arguments and an environment. Out: stdout, or GitFailed. Never: uses a shell for input of users, the user's own git
settings, or a secret in the arguments; leaves a child process behind.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from argosy.errors import SourceError, Unreachable

if TYPE_CHECKING:
    import asyncio

# Variables that git inherits: the program path and proxy settings.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
KEPT = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", *_PROXIES, *(name.upper() for name in _PROXIES))

CLEAN = {
    "LC_ALL": "C",  # git_errors matches its messages
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}

# Harmless mistakes of old programs, found in many well-known repositories.
_HARMLESS = (
    *("badTimezone", "badDate", "badDateOverflow", "zeroPaddedDate", "missingSpaceBeforeDate", "zeroPaddedFilemode"),
    *("badEmail", "missingEmail", "missingSpaceBeforeEmail", "missingNameBeforeEmail"),
    *("missingTaggerEntry", "badTagName"),
)

CONFIG = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "core.alternateRefsCommand": "",
    "core.bigFileThreshold": "1m",
    "core.packedGitWindowSize": "32m",  # a whole pack may not fit into a worker's memory
    "core.packedGitLimit": "256m",
    "credential.helper": "",
    "protocol.allow": "never",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # one pack per fetch: a killed fetch leaves one file to remove
    "fetch.writeCommitGraph": "false",
    "transfer.fsckObjects": "true",
    "fetch.fsckObjects": "true",
    "transfer.bundleURI": "false",
    "http.followRedirects": "false",  # a redirect would forward the credentials
    "http.sslVersion": "tlsv1.2",  # or newer; libcurl would accept TLS 1.0
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "30",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "advice.detachedHead": "false",
    **{f"fetch.fsck.{name}": "ignore" for name in _HARMLESS},
}
MOST_STDERR = 64 << 10
OLDEST = (2, 31)  # the first version that reads settings from the environment
_OLDEST = ".".join(map(str, OLDEST))
_BLOCK_BYTES = 512  # of POSIX sh's ulimit -f
VERSION_SECONDS = 15.0
_checked: set[str] = set()  # paths of programs that are new enough


class GitFailed(Exception):
    """git failed. `stderr` may contain secrets: only `git_errors` may read it."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"git failed with exit code {code}")
        self.code = code
        self.said = said


class TooMuchOutput(Exception):
    """git printed more than the limit."""


class Done(NamedTuple):
    code: int
    printed: bytes
    said: str  # stderr, which may contain secrets


def environment(config: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Build the environment with git settings: other users can read arguments in /proc, but not the environment."""
    settings = {**CONFIG, **config}
    env = {name: os.environ[name] for name in KEPT if name in os.environ} | CLEAN | dict(extra)
    env["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


async def run_git(
    folder: Path | None,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    seconds: float,
    most_output: int = 1 << 20,
    most_file: int | None = None,
    held: int | None = None,
) -> bytes:
    """Run git and return stdout. Raises GitFailed, TooMuchOutput, TimeoutError.

    `lock_fd` is a locked file that git inherits, so that the lock lasts as long as git runs.
    """
    await _check_version(env)
    argv = git_argv(folder, arguments)
    done = await run(argv, env=env, seconds=seconds, most_output=most_output, most_file=most_file, held=held)
    if done.code:
        raise GitFailed(done.code, done.said)
    return done.printed


async def _check_version(env: Mapping[str, str]) -> None:
    """Reject an old git: it would silently ignore our settings, including those for safety."""
    program = shutil.which("git", path=env.get("PATH"))
    if program in _checked:
        return
    said = (await run(["git", "version"], env=env, seconds=VERSION_SECONDS)).printed.decode(errors="replace")
    found = re.search(r"(\d+)\.(\d+)", said)
    if not found or (int(found[1]), int(found[2])) < OLDEST:
        which = found[0] if found else "unknown version"
        raise SourceError(f"git is too old ({which}); install git {_OLDEST} or newer")
    if program:
        _checked.add(program)


def git_argv(folder: Path | None, arguments: Sequence[str]) -> list[str]:
    return ["git", *([] if folder is None else [f"--git-dir={folder}"]), *arguments]


async def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    seconds: float,
    most_output: int = 1 << 20,
    most_file: int | None = None,
    held: int | None = None,
) -> Done:
    """Run any program and return its exit code and output."""
    import asyncio  # late import: processes that only read objects do not need it

    process = await _start(argv if most_file is None else _with_file_limit(argv, most_file), env, held)
    try:
        if most_file is not None:
            _limit_files(process.pid, most_file)
        async with asyncio.timeout(seconds):
            stdout, stderr = await asyncio.gather(
                _take(process.stdout, most_output), _take(process.stderr, MOST_STDERR, drop=True)
            )
            code = await process.wait()
    finally:
        await _end(process)
    return Done(code, stdout, stderr.decode(errors="replace"))


async def _start(argv: Sequence[str], env: Mapping[str, str], held: int | None) -> asyncio.subprocess.Process:
    import asyncio

    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=() if held is None else (held,),
            start_new_session=True,  # so that its children can be killed with it
        )
    except OSError as error:
        raise cannot_start(error) from error


def cannot_start(error: OSError) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceError(f"git is not installed, or not in PATH; install git {_OLDEST} or newer")
    return Unreachable(f"cannot start git: {error.strerror}; argosy will retry")


def _with_file_limit(argv: Sequence[str], most: int) -> list[str]:
    """Wrap argv in a shell that limits the file size before git starts, rounded up to the next block.

    git may write before `_limit_files` runs. If `_limit_files` ran first, the shell cannot raise its limit.
    """
    blocks = -(-most // _BLOCK_BYTES)
    return ["/bin/sh", "-c", 'ulimit -f "$0" 2>/dev/null; exec "$@"', str(blocks), *argv]


def _limit_files(pid: int, most: int) -> None:
    # Exact limit, set from outside: code between fork and exec is not safe with threads.
    if hasattr(resource, "prlimit"):
        try:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        except ProcessLookupError:
            pass


async def _take(stream: asyncio.StreamReader | None, most: int, *, drop: bool = False) -> bytes:
    assert stream is not None
    taken = bytearray()
    while chunk := await stream.read(1 << 16):
        room = most - len(taken)
        taken += chunk[:room]
        if len(chunk) > room and not drop:
            raise TooMuchOutput
    return bytes(taken)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill git and the programs that it started, if they still run."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    if process.returncode is None:
        await process.wait()
