"""The remote of a mirror: lists refs and fetches.

In: refspecs and a folder. Out: refs, or fetched objects, or a SourceError. Never: keeps a credential on disk after the
call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from argosy.errors import SourceError, SourceTimeout, SourceTooLarge
from argosy.gitops.application.repository_url import RepositoryUrl
from argosy.gitops.source.credentials import Credential, Trust
from argosy.gitops.source.git.command import GitFailed, TooMuchOutput, environment, run_git
from argosy.gitops.source.git.git_credentials import access
from argosy.gitops.source.git.git_errors import TOO_LARGE, source_error
from argosy.gitops.source.git.mirror_folder import largest_left
from argosy.gitops.source.git.refs import Refs, read_refs
from argosy.gitops.source.limits import SourceLimits

FETCH = (
    *("fetch", "--quiet", "--force", "--prune", "--no-tags"),
    *("--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head"),
)

# Arguments: repository URL for display, `ls-remote` or `fetch`, duration in seconds, True on success.
Observe = Callable[[str, str, float, bool], None]


@dataclass(frozen=True, slots=True)
class Remote:
    """Where to fetch from, and the URL to show to the user."""

    url: RepositoryUrl  # for git
    shown: str  # for messages
    credential: Credential | None = None
    trust: Trust = field(default_factory=Trust)
    limits: SourceLimits = field(default_factory=SourceLimits)
    observe: Observe | None = field(default=None, compare=False)

    async def refs(self, scratch: Path) -> Refs:
        """List the refs of the host now."""
        limits = self.limits
        arguments = ["ls-remote", "--quiet", "--", str(self.url)]
        listing = await self._run(None, arguments, scratch, limits.list_seconds, most_output=limits.refs_bytes)
        return read_refs(listing, self.shown)

    async def fetch(self, folder: Path, what: Sequence[str], *, scratch: Path, held: int) -> None:
        arguments = [*FETCH, "--", str(self.url), *what]
        try:
            await self._run(folder, arguments, scratch, self.limits.fetch_seconds, held=held)
        except SourceError as error:
            # The kernel kills git when it exceeds the file limit, so git cannot report the reason.
            if largest_left(folder) >= self.limits.pack_bytes:
                raise SourceTooLarge(TOO_LARGE, where=self.shown) from error
            raise

    async def _run(
        self,
        folder: Path | None,
        arguments: Sequence[str],
        scratch: Path,
        seconds: float,
        *,
        most_output: int = 1 << 20,
        held: int | None = None,
    ) -> bytes:
        with self._observed(arguments[0]), access(scratch, self.url, self.credential, self.trust) as given:
            env = environment(given.config, given.env)
            try:
                return await run_git(
                    folder,
                    arguments,
                    env=env,
                    seconds=seconds,
                    most_output=most_output,
                    most_file=self.limits.pack_bytes,
                    held=held,
                )
            except GitFailed as failed:
                # Not `from failed`: its text may contain secrets, and logging the error would log its cause.
                raise source_error(failed, self.shown, folder, given.secrets, arguments) from None
            except TimeoutError:
                setting = f"source.limit.{'list' if folder is None else 'fetch'}.seconds"
                raise SourceTimeout(
                    f"no answer in {seconds:g} s; argosy will retry; if it persists, check the host, make the "
                    f"repository smaller, or raise the setting {setting}",
                    where=self.shown,
                ) from None
            except TooMuchOutput:
                raise SourceTooLarge(
                    "the repository has too many branches and tags; delete unused ones", where=self.shown
                ) from None

    @contextmanager
    def _observed(self, request: str) -> Iterator[None]:
        began, is_good = time.monotonic(), False
        try:
            yield
            is_good = True
        finally:
            if self.observe is not None:
                self.observe(self.shown, request, time.monotonic() - began, is_good)
