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

from argosy.errors import SourceError, SourceUnreachable

if TYPE_CHECKING:
    import asyncio

# Variables that git inherits: the program path and proxy settings.
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
INHERITED_VARIABLES = (
    "PATH",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    *_PROXY_VARIABLES,
    *(name.upper() for name in _PROXY_VARIABLES),
)

FIXED_VARIABLES = {
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
_IGNORED_FSCK_ERRORS = (
    *("badTimezone", "badDate", "badDateOverflow", "zeroPaddedDate", "missingSpaceBeforeDate", "zeroPaddedFilemode"),
    *("badEmail", "missingEmail", "missingSpaceBeforeEmail", "missingNameBeforeEmail"),
    *("missingTaggerEntry", "badTagName"),
)

GIT_CONFIG = {
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
    **{f"fetch.fsck.{name}": "ignore" for name in _IGNORED_FSCK_ERRORS},
}
MAX_STDERR_BYTES = 64 << 10
MIN_GIT_VERSION = (2, 31)  # the first version that reads settings from the environment
_MIN_GIT_VERSION_TEXT = ".".join(map(str, MIN_GIT_VERSION))
_ULIMIT_BLOCK_BYTES = 512  # of POSIX sh's ulimit -f
VERSION_TIMEOUT_SECONDS = 15.0
_checked_programs: set[str] = set()  # paths of programs that are new enough


class GitFailed(Exception):
    """git failed. `stderr` may contain secrets: only `git_errors` may read it."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(f"git failed with exit code {code}")
        self.code = code
        self.stderr = stderr


class TooMuchOutput(Exception):
    """git printed more than the limit."""


class CommandResult(NamedTuple):
    code: int
    stdout: bytes
    stderr: str  # stderr, which may contain secrets


def build_environment(config: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Build the environment with git settings: other users can read arguments in /proc, but not the environment."""
    settings = {**GIT_CONFIG, **config}
    env = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ} | FIXED_VARIABLES | dict(extra)
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
    max_output_bytes: int = 1 << 20,
    max_file_bytes: int | None = None,
    lock_fd: int | None = None,
) -> bytes:
    """Run git and return stdout. Raises GitFailed, TooMuchOutput, TimeoutError.

    `lock_fd` is a locked file that git inherits, so that the lock lasts as long as git runs.
    """
    await _check_version(env)
    argv = build_git_argv(folder, arguments)
    result = await run_command(
        argv,
        env=env,
        seconds=seconds,
        max_output_bytes=max_output_bytes,
        max_file_bytes=max_file_bytes,
        lock_fd=lock_fd,
    )
    if result.code:
        raise GitFailed(result.code, result.stderr)
    return result.stdout


async def _check_version(env: Mapping[str, str]) -> None:
    """Reject an old git: it would silently ignore our settings, including those for safety."""
    program = shutil.which("git", path=env.get("PATH"))
    if program in _checked_programs:
        return
    output = (await run_command(["git", "version"], env=env, seconds=VERSION_TIMEOUT_SECONDS)).stdout.decode(
        errors="replace"
    )
    match = re.search(r"(\d+)\.(\d+)", output)
    if not match or (int(match[1]), int(match[2])) < MIN_GIT_VERSION:
        version = match[0] if match else "unknown version"
        raise SourceError(f"git is too old ({version}); install git {_MIN_GIT_VERSION_TEXT} or newer")
    if program:
        _checked_programs.add(program)


def build_git_argv(folder: Path | None, arguments: Sequence[str]) -> list[str]:
    return ["git", *([] if folder is None else [f"--git-dir={folder}"]), *arguments]


async def run_command(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    seconds: float,
    max_output_bytes: int = 1 << 20,
    max_file_bytes: int | None = None,
    lock_fd: int | None = None,
) -> CommandResult:
    """Run any program and return its exit code and output."""
    import asyncio  # late import: processes that only read objects do not need it

    process = await _start_process(
        argv if max_file_bytes is None else _wrap_with_file_limit(argv, max_file_bytes), env, lock_fd
    )
    try:
        if max_file_bytes is not None:
            _limit_file_size(process.pid, max_file_bytes)
        async with asyncio.timeout(seconds):
            stdout, stderr = await asyncio.gather(
                _read_stream(process.stdout, max_output_bytes),
                _read_stream(process.stderr, MAX_STDERR_BYTES, truncate=True),
            )
            code = await process.wait()
    finally:
        await _kill_process_group(process)
    return CommandResult(code, stdout, stderr.decode(errors="replace"))


async def _start_process(
    argv: Sequence[str], env: Mapping[str, str], lock_fd: int | None
) -> asyncio.subprocess.Process:
    import asyncio

    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            cwd="/",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=() if lock_fd is None else (lock_fd,),
            start_new_session=True,  # so that its children can be killed with it
        )
    except OSError as error:
        raise start_error(error) from error


def start_error(error: OSError) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceError(f"git is not installed, or not in PATH; install git {_MIN_GIT_VERSION_TEXT} or newer")
    return SourceUnreachable(f"cannot start git: {error.strerror}; argosy will retry")


def _wrap_with_file_limit(argv: Sequence[str], max_bytes: int) -> list[str]:
    """Wrap argv in a shell that limits the file size before git starts, rounded up to the next block.

    git may write before `_limit_file_size` runs. If `_limit_file_size` ran first, the shell cannot raise its limit.
    """
    blocks = -(-max_bytes // _ULIMIT_BLOCK_BYTES)
    return ["/bin/sh", "-c", 'ulimit -f "$0" 2>/dev/null; exec "$@"', str(blocks), *argv]


def _limit_file_size(pid: int, max_bytes: int) -> None:
    # Exact limit, set from outside: code between fork and exec is not safe with threads.
    if hasattr(resource, "prlimit"):
        try:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
        except ProcessLookupError:
            pass


async def _read_stream(stream: asyncio.StreamReader | None, max_bytes: int, *, truncate: bool = False) -> bytes:
    assert stream is not None
    content = bytearray()
    while chunk := await stream.read(1 << 16):
        remaining = max_bytes - len(content)
        content += chunk[:remaining]
        if len(chunk) > remaining and not truncate:
            raise TooMuchOutput
    return bytes(content)


async def _kill_process_group(process: asyncio.subprocess.Process) -> None:
    """Kill git and the programs that it started, if they still run."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    if process.returncode is None:
        await process.wait()
