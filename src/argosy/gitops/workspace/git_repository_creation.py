"""Creates a Git repository from files.

In: a folder that does not exist or is empty, and files. Out: the complete repository.
Never: a partial repository; changes an existing repository or file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from argosy.errors import TransientError, UserError

DEFAULT_BRANCH: Final = "main"
FALLBACK_IDENTITY: Final = {
    "user.name": "argosy",
    "user.email": "argosy@localhost",
}  # used if Git has no user configured
# Set while a hook of another repository runs; they would redirect git to that repository
GIT_REDIRECT_VARIABLES: Final = frozenset(
    f"GIT_{name}" for name in ("DIR", "WORK_TREE", "INDEX_FILE", "OBJECT_DIRECTORY", "COMMON_DIR", "PREFIX")
)


@dataclass(frozen=True)
class RepositoryFile:
    path: str
    content: bytes

    @property
    def is_executable(self) -> bool:
        return self.content.startswith(b"#!")


def create_repository(
    folder: Path, files: Sequence[RepositoryFile], *, message: str, remote: str, is_committed: bool
) -> str:
    """Create the repository and return its commit; empty if none was requested."""
    git = find_git()
    _check_target_folder(folder)
    with _scratch_folder(folder) as scratch:
        for file in files:
            _write_file(scratch, file)
        commit = _initialize_git(git, scratch, message, remote, is_committed)
        _move_into_place(scratch, folder)
    return commit


def find_git() -> str:
    if not (path := shutil.which("git")):
        raise TransientError("git was not found; install it (dnf install git, apt install git, brew install git)")
    return path


def _check_target_folder(folder: Path) -> None:
    if (folder / ".git").exists():
        raise UserError("a Git repository exists already; choose another folder", where=str(folder))
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError("is a file or a broken link; choose another name", where=str(folder))
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError("folder is not empty; choose another, or empty it", where=str(folder))


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder on the same disk: inside of the target folder if it exists, because only that one must be
    writable.
    """
    parent_folder = folder if folder.is_dir() else folder.parent
    created_parents = [parent for parent in (parent_folder, *parent_folder.parents) if not parent.exists()]
    scratch = parent_folder / f".argosy-init-{secrets.token_hex(4)}"
    try:
        scratch.mkdir(parents=True)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        for parent in created_parents:
            with suppress(OSError):  # not empty: it is in use
                parent.rmdir()


def _write_file(scratch: Path, file: RepositoryFile) -> None:
    path = scratch / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    if file.is_executable:
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o444) >> 2)  # executable for everyone who may read it


def _initialize_git(git: str, scratch: Path, message: str, remote: str, is_committed: bool) -> str:
    run = partial(_run_git, git, scratch)
    run("init", "--quiet")
    run("symbolic-ref", "HEAD", f"refs/heads/{DEFAULT_BRANCH}")  # `init -b` needs a newer Git
    if remote:
        run("remote", "add", "origin", remote)
    if not is_committed:
        return ""
    run("add", "--all")
    settings = {
        name: value for name, value in FALLBACK_IDENTITY.items() if not run("config", "--get", name, may_fail=True)
    }
    run("commit", "--quiet", "--message", message, settings=settings)
    return run("rev-parse", "--short", "HEAD")


def _run_git(
    git: str, scratch: Path, *arguments: str, settings: Mapping[str, str] | None = None, may_fail: bool = False
) -> str:
    config_options = [word for name, value in (settings or {}).items() for word in ("-c", f"{name}={value}")]
    result = subprocess.run(
        [git, *config_options, *arguments],
        cwd=scratch,
        env={name: value for name, value in os.environ.items() if name not in GIT_REDIRECT_VARIABLES},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode and not may_fail:
        error_text = " ".join(result.stderr.split()).replace("; ", ", ") or f"exit code {result.returncode}"
        raise UserError(f"git {arguments[0]}: {error_text}; correct that, or commit yourself with --no-commit")
    return result.stdout.strip()


def _move_into_place(scratch: Path, folder: Path) -> None:
    if not folder.is_dir():
        scratch.rename(folder)
        return
    # A shell may be in this folder, so it must not be replaced; .git makes it a repository and is moved last
    moved: list[Path] = []
    try:
        for entry in sorted(scratch.iterdir(), key=lambda path: path.name == ".git"):
            entry.rename(folder / entry.name)
            moved.append(folder / entry.name)
    except BaseException:
        for path in moved:
            path.rename(scratch / path.name)
        raise
