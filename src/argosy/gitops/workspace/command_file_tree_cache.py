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

from argosy.errors import SourceUnreachable, UserError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.workspace.checked_out_head import read_head
from argosy.gitops.workspace.enclosing_repository_lookup import find_git_folder, find_shared_git_folder

if TYPE_CHECKING:
    import asyncio

    from argosy.gitops.application import Source
    from argosy.gitops.render.settings import ChartRequest
    from argosy.gitops.source.git.refs import Refs
    from argosy.gitops.source.repository_access_settings import SourceSettings
    from argosy.gitops.source.repository_mirrors import Repositories

ShowProgress = Callable[[str], None]
PROGRESS_DELAY_SECONDS = 1.0  # seconds until a slow operation is announced on a terminal
LOCAL_GIT_TIMEOUT_SECONDS = 30.0
MAX_REF_AGE_SECONDS = 3600.0  # seconds; longer than a command runs


def find_cache_folder() -> Path:
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(configured) if configured.startswith("/") else Path.home() / ".cache") / "argosy" / "mirrors"


class CheckoutCache:
    """All file trees of one command. A Git server is asked once per repository and command."""

    def __init__(
        self, roots: Sequence[Path] = (), settings: SourceSettings | None = None, *, show_progress: ShowProgress
    ) -> None:
        self.roots = tuple(root.resolve() for root in roots)
        self.settings = settings
        self._show_progress = show_progress
        self._checkouts: dict[tuple[str, str, str], Checkout] = {}
        self._refs: dict[str, Refs] = {}
        self._errors_by_url: dict[str, SourceUnreachable] = {}
        self._stores: dict[tuple[Path, ...], Repositories] = {}
        self._runner: asyncio.Runner | None = None

    def open_working_tree(self, root: str) -> Checkout:
        checkout = self._checkouts.get((root, "", ""))
        if checkout is None:
            from argosy.gitops.source.folder_tree import FolderTree

            checkout = self._checkouts[root, "", ""] = Checkout(FolderTree(Path(root)), read_head(root).commit)
        return checkout

    def open_revision(self, url: str, ref: str, *, tag_prefix: str = "", extra_roots: Sequence[Path] = ()) -> Checkout:
        """Check out a repository at a revision; `extra_roots` are additional allowed roots for this one."""
        key = url, ref or "HEAD", tag_prefix
        if error := self._errors_by_url.get(url):
            raise error
        checkout = self._checkouts.get(key)
        if checkout is None:
            store = self._get_repositories((*self.roots, *extra_roots))
            try:
                with self._show_progress_if_slow(f"fetching {url}"):
                    pending_checkout = store.checkout(url, key[1], tag_prefix=tag_prefix, max_age=MAX_REF_AGE_SECONDS)
                    checkout = self._checkouts[key] = self._run(pending_checkout)
            except SourceUnreachable as error:
                self._errors_by_url[url] = (
                    error  # many folders need not wait for the same unreachable host one after another
                )
                raise
        return checkout

    def open_chart(self, source: Source) -> Checkout:
        """Fetch a chart of a Helm repository, without credentials."""
        key = f"{source.repo_url} {source.chart}", source.ref, ""
        if error := self._errors_by_url.get(source.repo_url):
            raise error
        if key not in self._checkouts:
            try:
                with self._show_progress_if_slow(f"fetching {source.chart} of {source.repo_url}"):
                    pending_checkout = self._get_repositories(self.roots).checkout_chart(
                        source.repo_url, source.chart, source.ref, max_age=MAX_REF_AGE_SECONDS
                    )
                    self._checkouts[key] = self._run(pending_checkout)
            except SourceUnreachable as error:
                self._errors_by_url[source.repo_url] = error
                raise
        return self._checkouts[key]

    def fetch_charts(self, requests: Sequence[ChartRequest]) -> list[FileTree]:
        """Fetch the trees of charts that a chart depends on."""
        from argosy.gitops.application import Source

        for request in requests:
            if request.repository.startswith(("@", "alias:")):
                message = f"dependency {request.name}: only an installation knows the repository {request.repository}"
                raise UserError(f"{message}; use its URL, or run `helm dependency build`", where="Chart.yaml")
        return [
            self.open_chart(Source(repo_url=request.repository, chart=request.name, ref=request.version)).tree
            for request in requests
        ]

    def fetch_refs(self, url: str) -> Refs:
        """Return all branches and tags of a repository, as its Git server has them now."""
        if error := self._errors_by_url.get(url):
            raise error
        if url not in self._refs:
            try:
                with self._show_progress_if_slow(f"asking {url}"):
                    self._refs[url] = self._run(self._get_repositories(self.roots).mirror(url).list_refs())
            except SourceUnreachable as error:
                self._errors_by_url[url] = error
                raise
        return self._refs[url]

    def open_local_revision(self, root: str, ref: str) -> Checkout:
        """Check out the repository of a working tree at a ref: as git itself resolves it, else like any other
        repository.
        """
        from argosy.gitops.source.git.command import GitFailed, build_environment, run_git

        git_folder = find_shared_git_folder(root)
        arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
        try:
            output = self._run(
                run_git(
                    find_git_folder(root), arguments, env=build_environment({}, {}), seconds=LOCAL_GIT_TIMEOUT_SECONDS
                )
            )
            ref = output.decode().strip()
        except GitFailed:
            pass  # a version range, or nothing
        return self.open_revision(str(git_folder), ref, extra_roots=(git_folder,))

    def fetch_tree(self, url: str, ref: str) -> FileTree:
        """Fetch the tree of a remote base."""
        return self.open_revision(url, ref).tree

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        if self._runner is not None:
            self._runner.close()

    def _get_repositories(self, roots: tuple[Path, ...]) -> Repositories:
        from dataclasses import replace

        from argosy.gitops.source.repository_access_settings import SourceSettings
        from argosy.gitops.source.repository_mirrors import Repositories

        if roots not in self._stores:
            base_settings = self.settings or SourceSettings()
            settings = replace(base_settings, local_roots=(*base_settings.local_roots, *roots))
            self._stores[roots] = Repositories(find_cache_folder(), settings)
        return self._stores[roots]

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        import asyncio

        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(work)

    @contextmanager
    def _show_progress_if_slow(self, message: str) -> Iterator[None]:
        if not sys.stderr.isatty():
            yield
            return
        import threading

        timer = threading.Timer(PROGRESS_DELAY_SECONDS, self._show_progress, [message])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
