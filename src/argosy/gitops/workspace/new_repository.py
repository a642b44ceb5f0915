"""Makes a Git repository of files. In: a folder that is not there or empty, and files. Out: the repository, whole.
Never: half of one; a repository or a file of somebody else is left alone."""

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
IDENTITY: Final = {"user.name": "argosy", "user.email": "argosy@localhost"}  # for who has told Git no name
# Set where a hook of another repository runs this; they would lead Git there
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
    """The commit; empty if none was asked for."""
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
        raise UserError("there is a Git repository already; choose another folder", where=str(folder))
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError("this is a file, or a link that leads to none; choose another name", where=str(folder))
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError("the folder is not empty; choose another, or empty it", where=str(folder))


@contextmanager
def _built_beside(folder: Path) -> Iterator[Path]:
    """A folder on the same disk: inside the one that is there, since only that one need be ours to write into."""
    place = folder if folder.is_dir() else folder.parent
    made = [parent for parent in (place, *place.parents) if not parent.exists()]
    workshop = place / f".argosy-init-{secrets.token_hex(4)}"
    try:
        workshop.mkdir(parents=True)
        yield workshop
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # not empty: it is needed
                parent.rmdir()


def _write(workshop: Path, file: File) -> None:
    path = workshop / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    if file.is_program:
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o444) >> 2)  # who may read it may run it


def _version(git: str, workshop: Path, message: str, remote: str, is_committed: bool) -> str:
    run = partial(_run, git, workshop)
    run("init", "--quiet")
    run("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")  # `init -b` is younger than many a Git
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
        raise UserError(f"git {words[0]}: {said}; correct that, or leave the commit to yourself with --no-commit")
    return done.stdout.strip()


def _move(workshop: Path, folder: Path) -> None:
    if not folder.is_dir():
        workshop.rename(folder)
        return
    # Somebody may stand in this folder, so it must stay the same one; its .git makes it a repository and comes last
    moved: list[Path] = []
    try:
        for each in sorted(workshop.iterdir(), key=lambda path: path.name == ".git"):
            each.rename(folder / each.name)
            moved.append(folder / each.name)
    except BaseException:
        for path in moved:
            path.rename(workshop / path.name)
        raise
