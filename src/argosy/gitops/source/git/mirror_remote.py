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
from argosy.gitops.application.repository_url_parser import RepositoryUrl
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential
from argosy.gitops.source.git.command import GitFailed, TooMuchOutput, build_environment, run_git
from argosy.gitops.source.git.git_command_credentials import prepare_access
from argosy.gitops.source.git.git_errors import TOO_LARGE_MESSAGE, build_source_error
from argosy.gitops.source.git.mirror_folder_file_operations import largest_incomplete_pack
from argosy.gitops.source.git.refs import Refs, read_refs
from argosy.gitops.source.limits import SourceLimits

FETCH_ARGUMENTS = (
    *("fetch", "--quiet", "--force", "--prune", "--no-tags"),
    *("--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head"),
)

# Arguments: repository URL for display, `ls-remote` or `fetch`, duration in seconds, True on success.
RequestObserver = Callable[[str, str, float, bool], None]


@dataclass(frozen=True, slots=True)
class MirrorRemote:
    """Where to fetch from, and the URL to show to the user."""

    url: RepositoryUrl  # for git
    display_url: str  # for messages
    credential: RepositoryCredential | None = None
    trust: HostTrust = field(default_factory=HostTrust)
    limits: SourceLimits = field(default_factory=SourceLimits)
    on_request: RequestObserver | None = field(default=None, compare=False)

    async def list_refs(self, scratch: Path) -> Refs:
        """List the refs of the host now."""
        limits = self.limits
        arguments = ["ls-remote", "--quiet", "--", str(self.url)]
        listing = await self._run(None, arguments, scratch, limits.list_seconds, max_output_bytes=limits.refs_bytes)
        return read_refs(listing, self.display_url)

    async def fetch(self, folder: Path, refspecs: Sequence[str], *, scratch: Path, lock_fd: int) -> None:
        arguments = [*FETCH_ARGUMENTS, "--", str(self.url), *refspecs]
        try:
            await self._run(folder, arguments, scratch, self.limits.fetch_seconds, lock_fd=lock_fd)
        except SourceError as error:
            # The kernel kills git when it exceeds the file limit, so git cannot report the reason.
            if largest_incomplete_pack(folder) >= self.limits.pack_bytes:
                raise SourceTooLarge(TOO_LARGE_MESSAGE, where=self.display_url) from error
            raise

    async def _run(
        self,
        folder: Path | None,
        arguments: Sequence[str],
        scratch: Path,
        seconds: float,
        *,
        max_output_bytes: int = 1 << 20,
        lock_fd: int | None = None,
    ) -> bytes:
        with (
            self._observe_request(arguments[0]),
            prepare_access(scratch, self.url, self.credential, self.trust) as git_access,
        ):
            env = build_environment(git_access.config, git_access.env)
            try:
                return await run_git(
                    folder,
                    arguments,
                    env=env,
                    seconds=seconds,
                    max_output_bytes=max_output_bytes,
                    max_file_bytes=self.limits.pack_bytes,
                    lock_fd=lock_fd,
                )
            except GitFailed as failed:
                # Not `from failed`: its text may contain secrets, and logging the error would log its cause.
                raise build_source_error(
                    failed, self.display_url, folder, git_access.secret_values, arguments
                ) from None
            except TimeoutError:
                setting = f"source.limit.{'list' if folder is None else 'fetch'}.seconds"
                raise SourceTimeout(
                    f"no answer in {seconds:g} s; argosy will retry; if it persists, check the host, make the "
                    f"repository smaller, or raise the setting {setting}",
                    where=self.display_url,
                ) from None
            except TooMuchOutput:
                raise SourceTooLarge(
                    "the repository has too many branches and tags; delete unused ones", where=self.display_url
                ) from None

    @contextmanager
    def _observe_request(self, request: str) -> Iterator[None]:
        started_at, succeeded = time.monotonic(), False
        try:
            yield
            succeeded = True
        finally:
            if self.on_request is not None:
                self.on_request(self.display_url, request, time.monotonic() - started_at, succeeded)
