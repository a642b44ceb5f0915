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

BRANCH: Final = "main"
IDENTITY: Final = {"user.name": "argosy", "user.email": "argosy@localhost"}  # used if Git has no user configured
# Set while a hook of another repository runs; they would redirect git to that repository
OF_ANOTHER: Final = frozenset(
    f"GIT_{name}" for name in ("DIR", "WORK_TREE", "INDEX_FILE", "OBJECT_DIRECTORY", "COMMON_DIR", "PREFIX")
)


@dataclass(frozen=True)
class File:
    path: str
    content: bytes

    @property
    def is_program(self) -> bool:
        return self.content.startswith(b"#!")


def make_repository(folder: Path, content: Sequence[File], *, message: str, remote: str, is_committed: bool) -> str:
    """Create the repository and return its commit; empty if none was requested."""
    git = find_git()
    _check(folder)
    with _built_beside(folder) as workshop:
        for file in content:
            _write(workshop, file)
        commit = _version(git, workshop, message, remote, is_committed)
        _move(workshop, folder)
    return commit


def find_git() -> str:
    if not (found := shutil.which("git")):
        raise TransientError("git was not found; install it (dnf install git, apt install git, brew install git)")
    return found


def _check(folder: Path) -> None:
    if (folder / ".git").exists():
        raise UserError("a Git repository exists already; choose another folder", where=str(folder))
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError("is a file or a broken link; choose another name", where=str(folder))
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError("folder is not empty; choose another, or empty it", where=str(folder))


@contextmanager
def _built_beside(folder: Path) -> Iterator[Path]:
    """Yield a folder on the same disk: inside of the target folder if it exists, because only that one must be
    writable.
    """
    place = folder if folder.is_dir() else folder.parent
    made = [parent for parent in (place, *place.parents) if not parent.exists()]
    workshop = place / f".argosy-init-{secrets.token_hex(4)}"
    try:
        workshop.mkdir(parents=True)
        yield workshop
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # not empty: it is in use
                parent.rmdir()


def _write(workshop: Path, file: File) -> None:
    path = workshop / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    if file.is_program:
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o444) >> 2)  # executable for everyone who may read it


def _version(git: str, workshop: Path, message: str, remote: str, is_committed: bool) -> str:
    run = partial(_run, git, workshop)
    run("init", "--quiet")
    run("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")  # `init -b` needs a newer Git
    if remote:
        run("remote", "add", "origin", remote)
    if not is_committed:
        return ""
    run("add", "--all")
    settings = {name: value for name, value in IDENTITY.items() if not run("config", "--get", name, may_fail=True)}
    run("commit", "--quiet", "--message", message, settings=settings)
    return run("rev-parse", "--short", "HEAD")


def _run(
    git: str, workshop: Path, *words: str, settings: Mapping[str, str] | None = None, may_fail: bool = False
) -> str:
    given = [word for name, value in (settings or {}).items() for word in ("-c", f"{name}={value}")]
    done = subprocess.run(
        [git, *given, *words],
        cwd=workshop,
        env={name: value for name, value in os.environ.items() if name not in OF_ANOTHER},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode and not may_fail:
        said = " ".join(done.stderr.split()).replace("; ", ", ") or f"exit code {done.returncode}"
        raise UserError(f"git {words[0]}: {said}; correct that, or commit yourself with --no-commit")
    return done.stdout.strip()


def _move(workshop: Path, folder: Path) -> None:
    if not folder.is_dir():
        workshop.rename(folder)
        return
    # A shell may be in this folder, so it must not be replaced; .git makes it a repository and is moved last
    moved: list[Path] = []
    try:
        for each in sorted(workshop.iterdir(), key=lambda path: path.name == ".git"):
            each.rename(folder / each.name)
            moved.append(folder / each.name)
    except BaseException:
        for path in moved:
            path.rename(workshop / path.name)
        raise
