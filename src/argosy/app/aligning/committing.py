"""What was changed as one commit on a new branch. In: Files, a name. Out: the commit. Never: a file of the working tree
touched; a branch that is there moved; half a commit: until the branch leads to it, nothing has happened."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from argosy.app.aligning.files import Files
from argosy.model.errors import UserError
from argosy.setup.repository.making import IDENTITY, OF_ANOTHER, find_git

NOWHERE: Final = "0" * 40


def commit(files: Files, branch: str, message: str) -> str:
    run = _Git(files.root)
    reference = f"refs/heads/{branch}"
    if not (run.says("check-ref-format", reference) and run.says("check-ref-format", "--branch", branch)):
        raise UserError(f"{branch!r} is no name for a branch; choose another", where="--branch")
    if run.says("rev-parse", "--verify", "--quiet", reference):
        raise UserError(f"there is a branch {branch!r} already; choose another name", where="--branch")
    changed = files.changed
    if dirty := run("status", "--porcelain", "--", *(f":(literal,top){path}" for path in changed)):
        told = "has changes that are not committed; commit them first, or use --write"
        raise UserError(told, where=", ".join(line[3:] for line in dirty.splitlines()))
    made = _committed(run, {path: text for path, (_, text) in changed.items()}, message)
    run("update-ref", "-m", "argosy align", reference, made, NOWHERE)
    return made


def _committed(run: _Git, texts: Mapping[str, str], message: str) -> str:
    head = run("rev-parse", "--verify", "HEAD^{commit}")
    with TemporaryDirectory(prefix="argosy-align-") as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        run("read-tree", head, more=own)
        for path, text in texts.items():
            mode = run("ls-files", "--stage", "--", f":(literal,top){path}", more=own)[:6]
            blob = run("hash-object", "-w", "--stdin", given=text)
            run("update-index", "--cacheinfo", f"{mode},{blob},{path}", more=own)
        tree = run("write-tree", more=own)
    settings = [f"-c{name}={value}" for name, value in IDENTITY.items() if not run.says("config", "--get", name)]
    return run(*settings, "commit-tree", tree, "-p", head, "-F", "-", given=f"{message}\n")


class _Git:
    def __init__(self, folder: str) -> None:
        self._folder, self._program = folder, find_git()

    def __call__(self, *words: str, given: str = "", more: Mapping[str, str] | None = None) -> str:
        done = self._run(words, given, more or {})
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split()) or f"exit code {done.returncode}"
            raise UserError(f"git: {said}; correct that, or use --write", where=self._folder)
        return done.stdout.decode(errors="replace").rstrip("\n")

    def says(self, *words: str) -> bool:
        """The answer to what git answers with its exit code."""
        return self._run(words, "", {}).returncode == 0

    def _run(self, words: tuple[str, ...], given: str, more: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
        own = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER}
        env = {**own, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **more}
        sent = given.encode()
        return subprocess.run(
            [self._program, *words], cwd=self._folder, env=env, input=sent, capture_output=True, check=False
        )
