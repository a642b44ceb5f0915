"""Reads Git objects through a long-running `git cat-file --batch`.

In: an object id. Out: kind and content, verified against the id. Never: reads more bytes than the limit; fetches.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from argosy.errors import CorruptSource, SourceError, SourceTooLarge
from argosy.gitops.source.git.command import build_environment, start_error
from argosy.gitops.source.limits import SourceLimits

MAX_OPEN_READERS = 16  # open readers for trees from other processes, each with a git process
MAX_CACHED_ENTRIES = 300_000  # cached tree entries per mirror
MAX_CACHED_COMMITS = 16  # unused folders are dropped after this many commits
SUSPECT_MARKER = "argosy-suspect"  # marker file in a damaged mirror, which is then recreated


class GitObject(NamedTuple):
    kind: str
    content: bytes


class FolderCache:
    """Cache of parsed trees by id: a new commit shares most of them with the previous one.

    Trees not used for `MAX_CACHED_COMMITS` commits are dropped, because each commit adds a version of a large folder.
    """

    def __init__(self) -> None:
        self._recent: dict[str, Mapping[str, Any]] = {}
        self._older: dict[str, Mapping[str, Any]] = {}  # not used since the last rotation
        self._entries = self._commits = 0

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def get(self, id: str) -> Mapping[str, Any] | None:
        folder = self._recent.get(id)
        if folder is None and (folder := self._older.pop(id, None)) is not None:
            self._insert(id, folder)
        return folder

    def store(self, id: str, folder: Mapping[str, Any], *, is_root: bool = False) -> None:
        """Store a parsed tree. `is_root`: it is the root tree of a commit."""
        self._commits += is_root
        if self._entries > MAX_CACHED_ENTRIES:
            self._older, self._recent, self._entries = {}, {}, 0
        elif self._commits > MAX_CACHED_COMMITS:
            self._older, self._recent, self._entries, self._commits = self._recent, {}, 0, 1
        self._insert(id, folder)

    def _insert(self, id: str, folder: Mapping[str, Any]) -> None:
        self._recent[id] = folder
        self._entries += 1 + len(folder)


class ObjectReader:
    """Thread-safe. Can be pickled: another process has one reader, with one git process, per mirror."""

    def __init__(self, folder: Path, limits: SourceLimits, where: str) -> None:
        self.folder = folder
        self.limits = limits
        self.where = where
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._kill_process: Callable[[], object] = lambda: None
        self.folders = FolderCache()

    def __reduce__(self) -> tuple[Any, ...]:
        return shared_reader, (self.folder, self.limits, self.where)

    def read(self, id: str) -> GitObject:
        git_object = self.find(id)
        if git_object is None:
            raise self._mark_corrupt(id, "is missing")
        return git_object

    def find(self, id: str) -> GitObject | None:
        """Return None if the mirror has no such object."""
        with self._lock:
            try:
                git_object = self._request_with_retry(id)
            except (OSError, ValueError) as error:
                self._stop_process()
                raise self._mark_corrupt(id, "cannot be read") from error
            except SourceError:
                self._stop_process()
                raise
        if git_object is not None and _compute_id(git_object, len(id)) != id:
            self.close()  # otherwise it would keep reading the damaged pack after the mirror was recreated
            raise self._mark_corrupt(id, "does not match its id")
        return git_object

    def close(self) -> None:
        """Stop the git process; the next read starts a new one."""
        with self._lock:
            self._stop_process()

    def _request_with_retry(self, id: str) -> GitObject | None:
        """Retry once with a new process: the open one may have been killed."""
        if self._process is not None:
            try:
                return self._request(id)
            except (OSError, ValueError):
                self._stop_process()
        return self._request(id)

    def _request(self, id: str) -> GitObject | None:
        process = self._process or self._start_process()
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

    def _start_process(self) -> subprocess.Popen[bytes]:
        try:
            self._process = subprocess.Popen(
                ["git", f"--git-dir={self.folder}", "cat-file", "--batch"],
                env=build_environment({}, {"GIT_ALLOW_PROTOCOL": "none"}),
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise start_error(error) from error
        # A reader that is dropped without close() must not leave its git process: Popen keeps running ones forever.
        self._kill_process = weakref.finalize(self, _kill_git, self._process, os.getpid())
        return self._process

    def _stop_process(self) -> None:
        self._process = None
        self._kill_process()  # has an effect only once

    def _mark_corrupt(self, id: str, problem: str) -> CorruptSource:
        if self.folder.is_dir():
            (self.folder / SUSPECT_MARKER).touch()
        return CorruptSource(
            f"object {id} {problem} in the local mirror; the next refresh fetches it again", where=self.where
        )


def _kill_git(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:  # a forked process has a copy of the reader, but its parent still reads
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


class ReaderPool:
    """Readers of trees that this process received: each keeps its git process and cache between trees."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_mirror: dict[tuple[Path, SourceLimits, str], ObjectReader] = {}

    def get(self, folder: Path, limits: SourceLimits, where: str) -> ObjectReader:
        with self._lock:
            reader = self._by_mirror.pop((folder, limits, where), None) or ObjectReader(folder, limits, where)
            self._by_mirror[folder, limits, where] = reader  # at the end: ordered by last use
            oldest = [*self._by_mirror][:-MAX_OPEN_READERS]
            evicted = [self._by_mirror.pop(mirror) for mirror in oldest]
        for evicted_reader in evicted:
            evicted_reader.close()  # a tree that still uses it reopens it
        return reader

    def close(self) -> None:
        with self._lock:
            readers = [*self._by_mirror.values()]
        for reader in readers:
            reader.close()


def shared_reader(folder: Path, limits: SourceLimits, where: str) -> ObjectReader:
    """Return this process's reader for a mirror that another process named."""
    return READERS.get(folder, limits, where)


READERS = ReaderPool()
atexit.register(READERS.close)


def _compute_id(git_object: GitObject, length: int) -> str:
    digest: Any = hashlib.sha256() if length == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(f"{git_object.kind} {len(git_object.content)}\0".encode())
    digest.update(git_object.content)
    return str(digest.hexdigest())
