"""Connection tests of repositories: list the refs from the Git host.

In: an address, the repository settings, optionally credentials that are not stored yet. Out: a connectionState, refs.
Never: exceeds its timeout; stores anything; returns a secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ArgosyError, UserError
from argosy.gitops.application.repository_url import parse_url
from argosy.gitops.application_client.client import now
from argosy.gitops.source.credentials import Credential, find_credential, read_credentials
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.source.git.remote import Remote
from argosy.gitops.source.repositories import Repositories
from argosy.isolation.scratch_folders import scratch_folder

SECONDS: Final = 10.0
AT_ONCE: Final = 8
MOST_KNOWN: Final = 1000
Key = tuple[str, str, str]
GOOD, BAD = "Successful", "Failed"  # argo: its values
ONLY_GIT: Final = "argosy does not support Helm chart repositories; keep the chart in Git"


@dataclass(frozen=True)
class State:
    status: str
    message: str = ""
    at: str = ""

    def document(self) -> dict[str, Any]:
        return {"status": self.status, "message": self.message, "attemptedAt": self.at or None}


async def refs_of(url: str, project: str, repositories: Repositories, given: Credential | None = None) -> Refs:
    """List the refs from the host, with the given credential or the configured ones. Raises SourceError."""
    place = repositories.settings.locate(asked := parse_url(url))
    credential = given
    if place.scheme == "file":
        credential = None
    elif given is None:
        credential = find_credential(repositories.credentials, place, project)
    remote = Remote(place, str(asked), credential, repositories.trust, repositories.settings.limits)
    with scratch_folder("argosy-probe-") as scratch:
        try:
            async with asyncio.timeout(SECONDS):
                return await remote.refs(scratch)
        except TimeoutError:
            raise UserError(f"timeout after {SECONDS:g} s; check the address and the host", where=str(asked)) from None


async def state_of(
    values: Mapping[str, str], repositories: Repositories, secrets: Sequence[Mapping[str, Any]] = ()
) -> State:
    """Test the connection. `values` are those of the Secret; `secrets` replace the configured credentials."""
    if values.get("type", "git") not in ("", "git") or values.get("enableOCI") == "true":
        return State("Unknown", ONLY_GIT, now())
    given = read_credentials(secrets)  # type: ignore[arg-type]
    usable = given[0] if given and (given[0].lets_in or given[0].fault) else None
    try:
        if usable is not None and usable.fault:
            raise UserError(usable.fault)
        await refs_of(values.get("url", ""), values.get("project", ""), repositories, usable)
    except ArgosyError as error:
        return State(BAD, str(error), now())
    return State(GOOD, "", now())


class States:
    """Cached connection states of repositories, with a limit on concurrent tests."""

    def __init__(self, seconds: float = 60.0) -> None:
        self._seconds = seconds
        self._known: dict[Key, tuple[float, State]] = {}
        self._asking: dict[Key, asyncio.Task[State]] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def of(
        self,
        values: Mapping[str, str],
        mark: str,
        repositories: Repositories,
        *,
        is_forced: bool = False,
        patience: float = SECONDS,
    ) -> State:
        """Get the state; Unknown if the test takes longer than `patience`. `mark` is the version of the Secret."""
        key = (values.get("url", ""), values.get("project", ""), mark)
        clock = asyncio.get_running_loop().time
        known = self._known.get(key)
        if known is not None and not is_forced and known[0] > clock():
            return known[1]
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._ask(key, values, repositories))
        task = self._asking[key]
        await asyncio.wait({task}, timeout=patience)
        return task.result() if task.done() else State("Unknown", "connection test in progress; try again in a moment")

    async def _ask(self, key: Key, values: Mapping[str, str], repositories: Repositories) -> State:
        try:
            async with self._gate:
                found = await state_of(values, repositories)
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            self._known[key] = asyncio.get_running_loop().time() + self._seconds, found
            return found
        finally:
            self._asking.pop(key, None)
