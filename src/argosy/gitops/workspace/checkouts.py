"""Opens the file trees that a render reads.

In: a folder, or a repository URL and a ref. Out: Checkouts, each opened once. Never: a local repository that the user
did not name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.errors import Unreachable
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.workspace.git_heads import head_of
from argosy.gitops.workspace.paths import own_folder, shared_folder

if TYPE_CHECKING:
    import asyncio

    from argosy.gitops.source.git.refs import Refs
    from argosy.gitops.source.repositories import Repositories
    from argosy.gitops.source.settings import SourceSettings

Talk = Callable[[str], None]
PATIENCE = 1.0  # seconds until a slow operation is announced on a terminal
LOCAL_SECONDS = 30.0
MAX_AGE = 3600.0  # seconds; longer than a command runs


def cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if chosen.startswith("/") else Path.home() / ".cache") / "argosy" / "mirrors"


class Checkouts:
    """All file trees of one command. A Git server is asked once per repository and command."""

    def __init__(self, roots: Sequence[Path] = (), settings: SourceSettings | None = None, *, talk: Talk) -> None:
        self.roots = tuple(root.resolve() for root in roots)
        self.settings = settings
        self._talk = talk
        self._known: dict[tuple[str, str, str], Checkout] = {}
        self._refs: dict[str, Refs] = {}
        self._failed: dict[str, Unreachable] = {}
        self._stores: dict[tuple[Path, ...], Repositories] = {}
        self._runner: asyncio.Runner | None = None

    def working(self, root: str) -> Checkout:
        known = self._known.get((root, "", ""))
        if known is None:
            from argosy.gitops.source.folder_tree import FolderTree

            known = self._known[root, "", ""] = Checkout(FolderTree(Path(root)), head_of(root).commit)
        return known

    def at(self, url: str, ref: str, *, tag_prefix: str = "", also: Sequence[Path] = ()) -> Checkout:
        """Check out a repository at a revision; `extra_roots` are additional allowed roots for this one."""
        key = url, ref or "HEAD", tag_prefix
        if error := self._failed.get(url):
            raise error
        known = self._known.get(key)
        if known is None:
            store = self._store((*self.roots, *also))
            try:
                with self._patiently(f"fetching {url}"):
                    asked = store.checkout(url, key[1], tag_prefix=tag_prefix, max_age=MAX_AGE)
                    known = self._known[key] = self._run(asked)
            except Unreachable as error:
                self._failed[url] = error  # many folders need not wait for the same unreachable host one after another
                raise
        return known

    def refs(self, url: str) -> Refs:
        """Return all branches and tags of a repository, as its Git server has them now."""
        if error := self._failed.get(url):
            raise error
        if url not in self._refs:
            try:
                with self._patiently(f"asking {url}"):
                    self._refs[url] = self._run(self._store(self.roots).mirror(url).refs())
            except Unreachable as error:
                self._failed[url] = error
                raise
        return self._refs[url]

    def within(self, root: str, ref: str) -> Checkout:
        """Check out the repository of a working tree at a ref: as git itself resolves it, else like any other
        repository.
        """
        from argosy.gitops.source.git.command import GitFailed, environment, run_git

        kept = shared_folder(root)
        arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
        try:
            found = self._run(run_git(own_folder(root), arguments, env=environment({}, {}), seconds=LOCAL_SECONDS))
            ref = found.decode().strip()
        except GitFailed:
            pass  # a version range, or nothing
        return self.at(str(kept), ref, also=(kept,))

    def fetch(self, url: str, ref: str) -> Tree:
        """Fetch the tree of a remote base."""
        return self.at(url, ref).tree

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        if self._runner is not None:
            self._runner.close()

    def _store(self, roots: tuple[Path, ...]) -> Repositories:
        from dataclasses import replace

        from argosy.gitops.source.repositories import Repositories
        from argosy.gitops.source.settings import SourceSettings

        if roots not in self._stores:
            given = self.settings or SourceSettings()
            settings = replace(given, local_roots=(*given.local_roots, *roots))
            self._stores[roots] = Repositories(cache_folder(), settings)
        return self._stores[roots]

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        import asyncio

        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(work)

    @contextmanager
    def _patiently(self, doing: str) -> Iterator[None]:
        if not sys.stderr.isatty():
            yield
            return
        import threading

        timer = threading.Timer(PATIENCE, self._talk, [doing])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
