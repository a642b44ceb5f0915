"""Git hosts over HTTP (git http-backend): credentials, redirects, timeouts, outages, protocols and mirrors."""

from __future__ import annotations

import asyncio
import base64
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.errors import SourceRefused, SourceTimeout, SourceUnreachable
from argosy.gitops.source.credentials import RepositoryCredential, read_credentials
from argosy.gitops.source.git.fetch_locks import hold_lock
from argosy.gitops.source.git.mirror import Mirror
from argosy.gitops.source.repository_access_settings import SourceLimits, SourceSettings, read_source_settings
from argosy.gitops.source.repository_mirrors import Repositories
from support.deadlines import HANG_SECONDS, wait_until_async
from support.git_server import GitHost, git_host, running_commands

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]
PASSWORD = "hunter22-very-secret"
BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    with git_host(tmp_path / "served") as server:
        yield server


def over_http(**limits: float) -> SourceSettings:
    return SourceSettings(protocols=frozenset({"http"}), limits=SourceLimits(**limits))  # type: ignore[arg-type]


def credentials(url: str, kind: str = "repo-creds", **fields: str) -> list[RepositoryCredential]:
    labels = {"argocd.argoproj.io/secret-type": kind}
    return read_credentials([{"metadata": {"name": "creds", "labels": labels}, "stringData": {"url": url, **fields}}])


@pytest.mark.parametrize(
    ("fields", "authorization"),
    [
        ({"username": "me", "password": PASSWORD}, f"Basic {BASIC}"),
        ({"password": PASSWORD}, "Basic " + base64.b64encode(f"x-access-token:{PASSWORD}".encode()).decode()),
        ({"bearerToken": PASSWORD}, f"Bearer {PASSWORD}"),
    ],
    ids=["basic", "token", "bearer"],
)
async def test_credentials_are_sent_and_never_in_arguments_or_files(
    repository, host: GitHost, opened: Opened, fields: dict[str, str], authorization: str
) -> None:
    repository.commit({"a": "1"})
    host.wanted = authorization
    repositories = opened(over_http(), credentials=credentials(host.url, **fields))
    assert (await repositories.checkout(f"{host.url}/models.git", "main")).tree.read_file("a") == b"1"
    secret = authorization.split()[1].encode()
    assert any(host.url.encode() in command for command in host.commands)
    assert not [command for command in host.commands if PASSWORD.encode() in command or secret in command]
    folder = repositories.mirror(f"{host.url}/models.git").folder
    files = [path for path in folder.parent.rglob("*") if path.is_file()]
    assert files and not [
        path for path in files if PASSWORD.encode() in path.read_bytes() or secret in path.read_bytes()
    ]


async def test_wrong_credentials_are_rejected_and_not_in_the_error(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    host.wanted = "Basic another"
    repositories = opened(over_http(), credentials=credentials(host.url, username="me", password=PASSWORD))
    with pytest.raises(SourceRefused, match="wants other credentials") as caught:
        await repositories.checkout(f"{host.url}/models.git", "main")
    error_text = (
        str(caught.value)
        + repr(caught.value)
        + repr(caught.value.__cause__)
        + repr(repositories.mirror(f"{host.url}/models.git").remote)
    )
    assert PASSWORD not in error_text and BASIC not in error_text


async def test_credentials_are_not_sent_to_similar_url(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    repositories = opened(over_http(), credentials=credentials(f"{host.url}/model", username="me", password=PASSWORD))
    await repositories.checkout(f"{host.url}/models.git", "main")
    assert {authorization for _, authorization in host.seen} == {""}


async def test_redirect_is_rejected(repository, host: GitHost, opened: Opened, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    host.redirect = "http://127.0.0.1:9/"
    repositories = opened(over_http(), credentials=credentials(host.url, username="me", password=PASSWORD))
    with pytest.raises(SourceRefused, match="redirects are not followed"):
        await repositories.checkout(f"{host.url}/models.git", "main")


async def test_missing_repository_raises_repository_not_found(host: GitHost, opened: Opened) -> None:
    with pytest.raises(SourceRefused, match="repository not found"):
        await opened(over_http()).checkout(f"{host.url}/none.git", "main")


async def test_unreachable_host_raises_error_and_its_last_checkout_stays_usable(
    repository, host: GitHost, opened: Opened
) -> None:
    good = repository.commit({"a": "1"})
    repositories, url = opened(over_http()), f"{host.url}/models.git"
    await repositories.checkout(url, "main")
    host.shutdown()
    host.server_close()
    with pytest.raises(SourceUnreachable, match="does not answer"):
        await repositories.checkout(url, "main")
    assert (await repositories.checkout(url, good)).tree.read_file("a") == b"1"


@pytest.mark.skipif(not Path("/usr/bin/ssh").exists(), reason="ssh is not installed")
async def test_unreachable_ssh_host_raises_source_unreachable(opened: Opened) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    url = f"ssh://git@127.0.0.1:{port}/org/models"
    repositories = opened(SourceSettings(), credentials=credentials(url, "repository", sshPrivateKey="no key at all"))
    with pytest.raises(SourceUnreachable, match="does not answer"):
        await repositories.checkout(url, "main")


async def test_slow_host_raises_timeout_and_leaves_no_process(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    host.holds = True
    for seconds in (0.5, 10.0, HANG_SECONDS):  # a busy machine may need longer to request the pack
        with pytest.raises(SourceTimeout, match=f"no answer in {seconds:g} s"):
            await opened(over_http(fetch_seconds=seconds)).checkout(f"{host.url}/models.git", "main")
        if host.asked_for_pack.is_set():
            break
    assert host.asked_for_pack.is_set()
    assert not [command for command in running_commands() if host.url.encode() in command]


async def test_cancelled_checkout_leaves_no_process(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    host.holds = True
    task = asyncio.create_task(opened(over_http()).checkout(f"{host.url}/models.git", "main"))
    assert await asyncio.to_thread(host.asked_for_pack.wait, HANG_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not [command for command in running_commands() if host.url.encode() in command]
    host.holds = False
    host.released.set()
    assert (await opened(over_http()).checkout(f"{host.url}/models.git", "main")).tree.read_file("a") == b"1"


async def test_concurrent_checkouts_share_at_most_two_ref_requests(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    repositories, url = opened(over_http()), f"{host.url}/models.git"
    await repositories.checkout(url, "main")
    host.seen.clear()
    checkouts = await asyncio.gather(*(repositories.checkout(url, "main") for _ in range(50)))
    assert len(checkouts) == 50
    assert len([path for path, _ in host.seen if "info/refs" in path]) <= 2


@pytest.mark.tier("all")
async def test_concurrent_checkouts_share_a_refusal(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    host.wanted = "Basic another"
    repositories, url = opened(over_http()), f"{host.url}/models.git"
    refs = [f"branch-{number}" for number in range(50)]
    errors = await asyncio.gather(*(repositories.checkout(url, ref) for ref in refs), return_exceptions=True)
    assert {type(error) for error in errors} == {SourceRefused} and len({id(error) for error in errors}) == 50
    assert len([path for path, _ in host.seen if "info/refs" in path]) <= 4


async def test_refs_are_cached_for_max_age(repository, host: GitHost, opened: Opened) -> None:
    old = repository.commit({"a": "1"})
    now = 1000.0
    opened_mirror = opened(over_http()).mirror(f"{host.url}/models.git")
    mirror = Mirror(opened_mirror.folder, opened_mirror.remote, clock=lambda: now)
    await mirror.checkout("main")
    new = repository.commit({"a": "2"})
    now += 30
    assert (await mirror.checkout("main", max_age=60)).revision == old
    now += 60
    assert (await mirror.checkout("main", max_age=60)).revision == new
    mirror.close()


class HeldUp(Mirror):
    """A mirror whose first checkout blocks until `let_go` is set."""

    is_held = True
    let_go: asyncio.Event

    async def _pin_revision(self, pin: str, revision: str) -> None:
        if self.is_held:
            self.is_held = False
            await self.let_go.wait()
        await super()._pin_revision(pin, revision)


@pytest.mark.tier("all")
async def test_slow_checkout_does_not_overwrite_newer_cached_refs(repository, host: GitHost, opened: Opened) -> None:
    old = repository.commit({"a": "1"})
    opened_mirror = opened(over_http()).mirror(f"{host.url}/models.git")
    mirror = HeldUp(opened_mirror.folder, opened_mirror.remote)
    mirror.let_go = asyncio.Event()
    slow = asyncio.create_task(mirror.checkout("main"))
    await wait_until_async(lambda: not mirror.is_held, "the first checkout is held up")
    new = repository.commit({"a": "2"})
    assert (await mirror.checkout("main")).revision == new
    mirror.let_go.set()
    assert (await slow).revision == old, "as it was when it was asked for"
    assert (await mirror.checkout("main", max_age=60)).revision == new
    mirror.close()


async def test_fetched_commit_is_not_served_to_another_project(repository, host: GitHost, opened: Opened) -> None:
    commit = repository.commit({"a": "1"})
    host.wanted = f"Basic {BASIC}"
    own = credentials(f"{host.url}/models.git", "repository", username="me", password=PASSWORD, project="ml")
    repositories, url = opened(over_http(), credentials=own), f"{host.url}/models.git"
    assert (await repositories.checkout(url, commit, project="ml")).revision == commit
    with pytest.raises(SourceRefused, match="wants other credentials"):
        await repositories.checkout(url, commit, project="web")


async def test_plain_http_is_rejected_by_default(host: GitHost, opened: Opened) -> None:
    with pytest.raises(SourceRefused, match="use one of https, ssh"):
        await opened(SourceSettings()).checkout(f"{host.url}/models.git", "main")
    assert host.seen == []


async def test_source_protocols_setting_allows_or_removes_protocols(repository, host: GitHost, opened: Opened) -> None:
    commit = repository.commit({"a": "1"})
    allowed = read_source_settings({"source.protocols": "https, ssh\nhttp"})
    assert (await opened(allowed).checkout(f"{host.url}/models.git", "main")).revision == commit
    for text, url in (("https", "git@github.example:org/models.git"), ("", "https://github.example/org/models.git")):
        with pytest.raises(SourceRefused, match=r"is not allowed.*source\.protocols"):
            await opened(read_source_settings({"source.protocols": text})).checkout(url, "main")


CHECKOUT = """
import asyncio, sys
from pathlib import Path
from argosy.gitops.source.git.fetch_locks import hold_lock
from argosy.gitops.source.git.mirror import Mirror
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.source.repository_access_settings import SourceSettings
settings = SourceSettings(protocols=frozenset({"http"}))
asyncio.run(Repositories(Path(sys.argv[1]), settings).checkout(sys.argv[2], "main"))
"""


@pytest.mark.tier("all")
async def test_process_killed_during_fetch_does_not_block_the_next_fetch(
    repository, host: GitHost, opened: Opened, tmp_path: Path
) -> None:
    repository.commit({"a": "1"})
    url = f"{host.url}/models.git"
    repositories = opened(over_http())
    await repositories.checkout(url, "main")
    new = repository.commit({"a": "2"})
    host.holds = True
    killed = subprocess.Popen([sys.executable, "-c", CHECKOUT, tmp_path / "mirrors", url])
    assert host.asked_for_pack.wait(HANG_SECONDS)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    host.holds = False
    # Its git process survives and holds the lock until it has the pack; then our fetch can start.
    folder = repositories.mirror(url).folder
    with pytest.raises(TimeoutError):
        async with hold_lock(folder.with_name(f"{folder.name}.lock"), seconds=0):
            pass
    host.released.set()
    checkout = await repositories.checkout(url, "main")
    assert checkout.revision == new and checkout.tree.read_file("a") == b"2"


# -- mirrors that replace hosts --------------------------------------------------------------------------------------


async def test_configured_mirror_replaces_the_host(repository, opened: Opened, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    (tmp_path / "served" / "org").mkdir()
    repository.path.rename(tmp_path / "served" / "org" / "Models.git")
    settings = read_source_settings({"source.mirrors": f"# ours\nhttps://github.example {tmp_path}/served\n"})
    for url in ("https://github.example/org/Models", "https://github.example/org/Models.git"):
        assert (await opened(settings).checkout(url, "main")).tree.read_file("a") == b"1"


async def test_mirror_with_the_longest_url_prefix_is_used(repository, opened: Opened, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    lines = f"https://github.example /nowhere\nhttps://github.example/org {tmp_path}/served"
    settings = read_source_settings({"source.mirrors": lines})
    assert (await opened(settings).checkout("https://github.example/org/models", "main")).tree.read_file("a") == b"1"
    with pytest.raises(SourceRefused):
        await opened(settings).checkout("https://github.example/organisation/models", "main")


async def test_mirror_path_outside_its_folder_is_rejected(repository, opened: Opened, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    inner = tmp_path / "served" / "inner"
    inner.mkdir()
    (inner / "link").symlink_to(repository.path)
    settings = read_source_settings({"source.mirrors": f"https://github.example {inner}"})
    for path in ("link", "../models.git", "%2e%2e/models.git"):
        with pytest.raises(SourceRefused):
            await opened(settings).checkout(f"https://github.example/{path}", "main")


@pytest.mark.tier("all")
async def test_mirror_can_be_another_host(repository, host: GitHost, opened: Opened) -> None:
    repository.commit({"a": "1"})
    mirrors = read_source_settings({"source.mirrors": f"https://github.example/org {host.url}"}).mirrors
    settings = SourceSettings(mirrors=mirrors, protocols=frozenset({"http"}))
    assert (await opened(settings).checkout("https://github.example/org/models.git", "main")).tree.read_file(
        "a"
    ) == b"1"
