"""Reads Git objects through a long-running `git cat-file --batch`.

In: an object id. Out: kind and content, verified against the id. Never: reads more bytes than the limit; fetches.
"""

from __future__ import annotations

import atexit
import hashlib
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from argosy.errors import CorruptSource, SourceError, SourceTooLarge
from argosy.gitops.source.git.command import cannot_start, environment
from argosy.gitops.source.limits import SourceLimits

MOST_READERS = 16  # open readers for trees from other processes, each with a git process
MOST_ENTRIES = 300_000  # cached tree entries per mirror
MOST_COMMITS = 16  # unused folders are dropped after this many commits
SUSPECT = "argosy-suspect"  # marker file in a damaged mirror, which is then recreated


class GitObject(NamedTuple):
    kind: str
    content: bytes


class Folders:
    """Cache of parsed trees by id: a new commit shares most of them with the previous one.

    Trees not used for `MAX_CACHED_COMMITS` commits are dropped, because each commit adds a version of a large folder.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Mapping[str, Any]] = {}
        self._before: dict[str, Mapping[str, Any]] = {}  # not used since the last rotation
        self._entries = self._commits = 0

    def __len__(self) -> int:
        return len(self._by_id) + len(self._before)

    def get(self, id: str) -> Mapping[str, Any] | None:
        found = self._by_id.get(id)
        if found is None and (found := self._before.pop(id, None)) is not None:
            self._keep(id, found)
        return found

    def keep(self, id: str, folder: Mapping[str, Any], *, is_root: bool = False) -> None:
        """Store a parsed tree. `is_root`: it is the root tree of a commit."""
        self._commits += is_root
        if self._entries > MOST_ENTRIES:
            self._before, self._by_id, self._entries = {}, {}, 0
        elif self._commits > MOST_COMMITS:
            self._before, self._by_id, self._entries, self._commits = self._by_id, {}, 0, 1
        self._keep(id, folder)

    def _keep(self, id: str, folder: Mapping[str, Any]) -> None:
        self._by_id[id] = folder
        self._entries += 1 + len(folder)


class ObjectReader:
    """Thread-safe. Can be pickled: another process has one reader, with one git process, per mirror."""

    def __init__(self, folder: Path, limits: SourceLimits, where: str) -> None:
        self.folder = folder
        self.limits = limits
        self.where = where
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.folders = Folders()

    def __reduce__(self) -> tuple[Any, ...]:
        return reader_of, (self.folder, self.limits, self.where)

    def read(self, id: str) -> GitObject:
        found = self.find(id)
        if found is None:
            raise self._corrupt(id, "is missing")
        return found

    def find(self, id: str) -> GitObject | None:
        """Return None if the mirror has no such object."""
        with self._lock:
            try:
                found = self._ask_twice(id)
            except (OSError, ValueError) as error:
                self._close()
                raise self._corrupt(id, "cannot be read") from error
            except SourceError:
                self._close()
                raise
        if found is not None and _id_of(found, len(id)) != id:
            self.close()  # otherwise it would keep reading the damaged pack after the mirror was recreated
            raise self._corrupt(id, "does not match its id")
        return found

    def close(self) -> None:
        """Stop the git process; the next read starts a new one."""
        with self._lock:
            self._close()

    def _ask_twice(self, id: str) -> GitObject | None:
        """Retry once with a new process: the open one may have been killed."""
        if self._process is not None:
            try:
                return self._ask(id)
            except (OSError, ValueError):
                self._close()
        return self._ask(id)

    def _ask(self, id: str) -> GitObject | None:
        process = self._process or self._open()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(id.encode("ascii") + b"\n")
        process.stdin.flush()
        header = process.stdout.readline(1024).split()
        if len(header) == 2 and header[1] == b"missing":
            return None
        if len(header) != 3:
            raise ValueError("no answer")
        kind, size = header[1].decode(), int(header[2])
        if size > self.limits.file_bytes:
            # The content stays unread: the process is killed, and the next read starts a new one.
            raise SourceTooLarge(
                f"object {id} has {size} bytes, the limit is {self.limits.file_bytes}; keep it outside Git",
                where=self.where,
            )
        content = process.stdout.read(size)
        if len(content) != size or process.stdout.read(1) != b"\n":
            raise ValueError("cut short")
        return GitObject(kind, content)

    def _open(self) -> subprocess.Popen[bytes]:
        try:
            self._process = subprocess.Popen(
                ["git", f"--git-dir={self.folder}", "cat-file", "--batch"],
                env=environment({}, {"GIT_ALLOW_PROTOCOL": "none"}),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise cannot_start(error) from error
        return self._process

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass

    def _corrupt(self, id: str, what: str) -> CorruptSource:
        if self.folder.is_dir():
            (self.folder / SUSPECT).touch()
        return CorruptSource(
            f"object {id} {what} in the local mirror; the next refresh fetches it again", where=self.where
        )


class Readers:
    """Readers of trees that this process received: each keeps its git process and cache between trees."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_mirror: dict[tuple[Path, SourceLimits, str], ObjectReader] = {}

    def get(self, folder: Path, limits: SourceLimits, where: str) -> ObjectReader:
        with self._lock:
            reader = self._by_mirror.pop((folder, limits, where), None) or ObjectReader(folder, limits, where)
            self._by_mirror[folder, limits, where] = reader  # at the end: ordered by last use
            oldest = [*self._by_mirror][:-MOST_READERS]
            surplus = [self._by_mirror.pop(mirror) for mirror in oldest]
        for other in surplus:
            other.close()  # a tree that still uses it reopens it
        return reader

    def close(self) -> None:
        with self._lock:
            readers = [*self._by_mirror.values()]
        for reader in readers:
            reader.close()


def reader_of(folder: Path, limits: SourceLimits, where: str) -> ObjectReader:
    """Return this process's reader for a mirror that another process named."""
    return READERS.get(folder, limits, where)


READERS = Readers()
atexit.register(READERS.close)


def _id_of(found: GitObject, length: int) -> str:
    digest: Any = hashlib.sha256() if length == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(f"{found.kind} {len(found.content)}\0".encode())
    digest.update(found.content)
    return str(digest.hexdigest())
