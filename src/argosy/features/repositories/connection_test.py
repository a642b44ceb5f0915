"""Connection tests of repositories: list the refs of a Git host, or download the index of a Helm repository.

In: an address, the repository settings, optionally credentials that are not stored yet. Out: a connectionState, refs.
Never: exceeds its timeout; stores anything; returns a secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ArgosyError, UserError
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.application_client.application_service import current_timestamp
from argosy.gitops.source.charts.chart_index import check_index
from argosy.gitops.source.credentials import GIT, HELM, RepositoryCredential, find_credential, read_credentials
from argosy.gitops.source.git.mirror_remote import MirrorRemote
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation.scratch_folders import create_scratch_folder

TEST_TIMEOUT_SECONDS: Final = 10.0
MAX_CONCURRENT_TESTS: Final = 8
MAX_CACHED_STATES: Final = 1000
StateCacheKey = tuple[str, str, str]
SUCCESSFUL, FAILED = "Successful", "Failed"  # argo: its values
NO_OCI_MESSAGE: Final = "argosy does not support OCI registries; use a Helm repository, or keep the chart in Git"


@dataclass(frozen=True)
class ConnectionState:
    status: str
    message: str = ""
    attempted_at: str = ""

    def to_wire(self) -> dict[str, Any]:
        return {"status": self.status, "message": self.message, "attemptedAt": self.attempted_at or None}


async def fetch_refs(
    url: str, project: str, repositories: Repositories, override_credential: RepositoryCredential | None = None
) -> Refs:
    """List the refs from the host, with the given credential or the configured ones. Raises SourceError."""
    location = repositories.settings.locate(parsed_url := parse_url(url))
    credential = override_credential
    if location.scheme == "file":
        credential = None
    elif override_credential is None:
        credential = find_credential(repositories.credentials, location, project)
    remote = MirrorRemote(location, str(parsed_url), credential, repositories.trust, repositories.settings.limits)
    with create_scratch_folder("argosy-probe-") as scratch:
        try:
            async with asyncio.timeout(TEST_TIMEOUT_SECONDS):
                return await remote.list_refs(scratch)
        except TimeoutError:
            raise UserError(
                f"timeout after {TEST_TIMEOUT_SECONDS:g} s; check the address and the host", where=str(parsed_url)
            ) from None


async def _fetch_index(
    url: str, project: str, repositories: Repositories, override_credential: RepositoryCredential | None = None
) -> None:
    """Download the index of a Helm repository. Raises SourceError."""
    host = repositories.chart_host(url, project=project, credential=override_credential)
    try:
        async with asyncio.timeout(TEST_TIMEOUT_SECONDS):
            check_index(await host.fetch_index(), host.display_url)
    except TimeoutError:
        raise UserError(
            f"timeout after {TEST_TIMEOUT_SECONDS:g} s; check the address and the host", where=host.display_url
        ) from None


async def test_connection(
    values: Mapping[str, str], repositories: Repositories, secrets: Sequence[Mapping[str, Any]] = ()
) -> ConnectionState:
    """Test the connection. `values` are those of the Secret; `secrets` replace the configured credentials."""
    type = values.get("type") or GIT
    if type not in (GIT, HELM) or values.get("enableOCI") == "true":
        return ConnectionState("Unknown", NO_OCI_MESSAGE, current_timestamp())
    credentials = read_credentials(secrets)  # type: ignore[arg-type]
    usable = credentials[0] if credentials and (credentials[0].has_credentials or credentials[0].fault) else None
    try:
        if usable is not None and usable.fault:
            raise UserError(usable.fault)
        fetch = _fetch_index if type == HELM else fetch_refs
        await fetch(values.get("url", ""), values.get("project", ""), repositories, usable)
    except ArgosyError as error:
        return ConnectionState(FAILED, str(error), current_timestamp())
    return ConnectionState(SUCCESSFUL, "", current_timestamp())


class RepositoryStateCache:
    """Cached connection states of repositories, with a limit on concurrent tests."""

    def __init__(self, cache_seconds: float = 60.0) -> None:
        self._cache_seconds = cache_seconds
        self._cached: dict[StateCacheKey, tuple[float, ConnectionState]] = {}
        self._running_tests: dict[StateCacheKey, asyncio.Task[ConnectionState]] = {}
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT_TESTS)

    async def get_state(
        self,
        values: Mapping[str, str],
        version: str,
        repositories: Repositories,
        *,
        is_forced: bool = False,
        wait_seconds: float = TEST_TIMEOUT_SECONDS,
    ) -> ConnectionState:
        """Get the state; Unknown if the test takes longer than `wait_seconds`. `version` is that of the Secret."""
        key = (values.get("url", ""), values.get("project", ""), version)
        clock = asyncio.get_running_loop().time
        cached = self._cached.get(key)
        if cached is not None and not is_forced and cached[0] > clock():
            return cached[1]
        if key not in self._running_tests:
            self._running_tests[key] = asyncio.create_task(self._run_test(key, values, repositories))
        task = self._running_tests[key]
        await asyncio.wait({task}, timeout=wait_seconds)
        return (
            task.result()
            if task.done()
            else ConnectionState("Unknown", "connection test in progress; try again in a moment")
        )

    async def _run_test(
        self, key: StateCacheKey, values: Mapping[str, str], repositories: Repositories
    ) -> ConnectionState:
        try:
            async with self._semaphore:
                state = await test_connection(values, repositories)
            if len(self._cached) > MAX_CACHED_STATES:
                self._cached.clear()
            self._cached[key] = asyncio.get_running_loop().time() + self._cache_seconds, state
            return state
        finally:
            self._running_tests.pop(key, None)
