"""Git repositories that tests write to without a work tree.

In: files by path. Out: commits of a bare repository. Never: uses the Git configuration of the user.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Repository:
    """A bare Git repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main")

    def git(self, *arguments: str, input: bytes | None = None) -> str:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **{
                f"GIT_{role}_{field}": "argosy@example.com"
                for role in ("AUTHOR", "COMMITTER")
                for field in ("NAME", "EMAIL")
            },
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        command = ["git", f"--git-dir={self.path}", *arguments]
        done = subprocess.run(command, env=env, input=input, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", input=content)

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """Write a Git tree of (mode, id, name) entries, including entries that `git add` would refuse."""
        raw = b"".join(
            mode.encode() + b" " + os.fsencode(name) + b"\0" + bytes.fromhex(id) for mode, id, name in entries
        )
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", input=raw)

    def commit_tree(self, tree: str, branch: str = "main") -> str:
        commit = self.git("commit-tree", tree, "-m", "a commit")
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def commit(self, files: dict[str, str], branch: str = "main") -> str:
        """Set the branch to a commit with these files and without parents."""
        return self.commit_tree(self._tree_of(files), branch)

    def tag(self, *names: str) -> None:
        for name in names:
            self.git("tag", name, "main")

    def _tree_of(self, files: dict[str, str]) -> str:
        names = sorted(
            {path.partition("/")[0] for path in files}, key=lambda name: name + ("" if name in files else "/")
        )
        entries = []
        for name in names:
            if name in files:
                entries.append(("100644", self.blob(files[name].encode()), name))
            else:
                inner = {path.partition("/")[2]: text for path, text in files.items() if path.startswith(f"{name}/")}
                entries.append(("40000", self._tree_of(inner), name))
        return self.tree(*entries)
