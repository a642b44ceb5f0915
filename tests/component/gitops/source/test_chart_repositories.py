"""Helm repositories over HTTPS: versions, credentials, redirects, certificates, digests and the cache."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.errors import (
    AddressRefused,
    CorruptSource,
    SourceError,
    SourceRefused,
    SourceTooLarge,
    SourceUnreachable,
    UnknownRef,
)
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.source.charts import chart_repository
from argosy.gitops.source.charts.chart_index import ChartVersion, list_chart_versions
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential, read_credentials
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import CHARTS_FOLDER, Repositories
from support.certificates import issue, server_context
from support.chart_server import ChartServer, chart_files, chart_server, pack
from support.deadlines import HANG_SECONDS
from support.helm_charts import HELM, needs_helm

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]
PASSWORD = "hunter22-very-secret"
BASIC = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
AUTHORITY = issue("test authority", is_authority=True)
HOST_CERTIFICATE = issue("127.0.0.1", AUTHORITY)
CLIENT_CERTIFICATE = issue("client", AUTHORITY, is_for_clients=True)
TRUST = HostTrust(authorities_by_host={"127.0.0.1": AUTHORITY.pem.decode()})
OVER_HTTP = SourceSettings(protocols=frozenset({"http"}))


@pytest.fixture
def host() -> Iterator[ChartServer]:
    with chart_server() as server:
        yield server


@pytest.fixture
def other_host() -> Iterator[ChartServer]:
    with chart_server() as server:
        yield server


def credentials(url: str, kind: str = "repository", **fields: str) -> list[RepositoryCredential]:
    labels = {"argocd.argoproj.io/secret-type": kind}
    values = {"url": url, "type": "helm", "username": "me", "password": PASSWORD, **fields}
    return read_credentials([{"metadata": {"name": "creds", "labels": labels}, "stringData": values}])


def version_of(checkout: Checkout) -> str:
    return str(yaml.safe_load(checkout.tree.read_file("Chart.yaml"))["version"])


@needs_helm
async def test_chart_that_helm_packaged_and_indexed_is_read(host: ChartServer, opened: Opened, tmp_path: Path) -> None:
    for path, text in chart_files("shop", "1.2.3").items():
        file = tmp_path / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for command in (["package", "shop", "-d", "out"], ["repo", "index", "out"]):
        subprocess.run([HELM, *command], cwd=tmp_path, check=True, capture_output=True)
    host.files = {f"/stable/{path.name}": path.read_bytes() for path in (tmp_path / "out").iterdir()}
    checkout = await opened(OVER_HTTP).checkout_chart(f"{host.url}/stable", "shop", "^1.0")
    assert (checkout.revision, version_of(checkout)) == ("1.2.3", "1.2.3")
    assert checkout.tree.read_file("values.yaml") == b"size: small\n"


async def test_range_follows_the_index_and_its_age(host: ChartServer, opened: Opened) -> None:
    repositories = opened(OVER_HTTP)
    host.publish("shop", "1.0.0")
    assert (await repositories.checkout_chart(host.url, "shop", "1.x")).revision == "1.0.0"
    host.publish("shop", "1.1.0")
    assert (await repositories.checkout_chart(host.url, "shop", "1.x", max_age=3600)).revision == "1.0.0"
    checkout = await repositories.checkout_chart(host.url, "shop", "1.x")
    assert (checkout.revision, version_of(checkout)) == ("1.1.0", "1.1.0")


async def test_pinned_chart_in_the_cache_needs_no_network(host: ChartServer, opened: Opened) -> None:
    host.publish("shop", "1.0.0")
    await opened(OVER_HTTP).checkout_chart(host.url, "shop", "1.0.0")
    host.code = 503
    assert version_of(await opened(OVER_HTTP).checkout_chart(host.url, "shop", "1.0.0")) == "1.0.0"
    with pytest.raises(SourceUnreachable, match="HTTP 503; argosy will retry"):
        await opened(OVER_HTTP).checkout_chart(host.url, "shop", "1.x")


async def test_version_published_after_the_index_was_read_is_found(host: ChartServer, opened: Opened) -> None:
    repositories = opened(OVER_HTTP)
    host.publish("shop", "1.0.0")
    await repositories.checkout_chart(host.url, "shop", "1.0.0")
    host.publish("shop", "1.0.1")
    assert version_of(await repositories.checkout_chart(host.url, "shop", "1.0.1", max_age=3600)) == "1.0.1"


async def test_hard_refresh_downloads_a_version_that_was_published_again(host: ChartServer, opened: Opened) -> None:
    repositories = opened(OVER_HTTP)
    host.publish("shop", "1.0.0")
    old = await repositories.checkout_chart(host.url, "shop", "1.0.0")
    host.entries.clear()
    host.publish("shop", "1.0.0", archive=pack({**chart_files("shop", "1.0.0"), "values.yaml": "size: big"}, "shop"))
    same = await repositories.checkout_chart(host.url, "shop", "1.0.0")
    assert same.tree.find_entry("values.yaml") == old.tree.find_entry("values.yaml")
    new = await repositories.checkout_chart(host.url, "shop", "1.0.0", ignores_cache=True)
    assert new.tree.read_file("values.yaml") == b"size: big"


@pytest.mark.parametrize("damage", [lambda content: content[:-200], lambda content: bytes(len(content)), lambda _: b""])
async def test_damaged_file_of_the_cache_is_downloaded_again(
    host: ChartServer, opened: Opened, damage: Callable[[bytes], bytes]
) -> None:
    host.publish("shop", "1.0.0")
    repositories = opened(OVER_HTTP)
    await repositories.checkout_chart(host.url, "shop", "1.0.0")
    for path in (repositories.folder / CHARTS_FOLDER).iterdir():
        path.write_bytes(damage(path.read_bytes()))
    checkout = await opened(OVER_HTTP).checkout_chart(host.url, "shop", "1.0.0")  # as after a power loss
    assert version_of(checkout) == "1.0.0"
    for path in (repositories.folder / CHARTS_FOLDER).glob("*.index"):
        path.write_bytes(damage(path.read_bytes()))
    assert (await repositories.checkout_chart(host.url, "shop", "*", max_age=3600)).revision == "1.0.0"


async def test_index_that_is_replaced_while_the_old_one_is_parsed_counts_from_then_on(
    host: ChartServer, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.publish("shop", "1.0.0")
    repository = opened(OVER_HTTP).chart_repository(host.url)
    is_parsing, may_go_on = threading.Event(), threading.Event()

    def parse_slowly(*arguments: Any) -> list[ChartVersion]:
        is_parsing.set()
        may_go_on.wait(HANG_SECONDS)
        return list_chart_versions(*arguments)

    monkeypatch.setattr(chart_repository, "list_chart_versions", parse_slowly)
    slow = asyncio.create_task(repository.list_versions("shop"))
    await asyncio.to_thread(is_parsing.wait, HANG_SECONDS)
    host.publish("shop", "1.1.0")
    monkeypatch.setattr(chart_repository, "list_chart_versions", list_chart_versions)
    await repository.list_charts()  # downloads the new index
    may_go_on.set()
    await slow
    newest = await repository.list_versions("shop", max_age=3600)
    assert [version.version for version in newest] == ["1.1.0", "1.0.0"]


async def test_concurrent_requests_share_the_index_and_the_download(host: ChartServer, opened: Opened) -> None:
    host.publish("shop", "1.0.0")
    repositories = opened(OVER_HTTP)
    await asyncio.gather(*(repositories.checkout_chart(host.url, "shop", "*", max_age=60) for _ in range(8)))
    assert (host.count("/index.yaml"), host.count("/charts/shop-1.0.0.tgz")) == (1, 1)


async def test_unknown_chart_and_version_are_errors_that_suggest_another(host: ChartServer, opened: Opened) -> None:
    host.publish("shop", "1.0.0")
    repositories = opened(OVER_HTTP)
    for chart, ref, message in (
        ("shpo", "*", "chart 'shpo' not found in index"),
        ("shop", "1.0.1", r"chart shop has no version '1\.0\.1'; did you mean 1\.0\.0\?"),
        ("shop", ">2", "none of the 1 versions of chart shop is in the range '>2'"),
        ("shop", "", "targetRevision is required"),
    ):
        with pytest.raises(UnknownRef, match=message):
            await repositories.checkout_chart(host.url, chart, ref)
    with pytest.raises(SourceRefused, match="invalid chart name"):
        await repositories.checkout_chart(host.url, "../shop", "1.0.0")


async def test_address_that_is_no_helm_repository_is_an_error(host: ChartServer, opened: Opened) -> None:
    repositories = opened(OVER_HTTP)
    with pytest.raises(SourceRefused, match="not found, or the credentials may not read it"):
        await repositories.checkout_chart(host.url, "shop", "*")
    host.files["/index.yaml"] = b"<html></html>"
    with pytest.raises(CorruptSource, match="this is not a Helm repository"):
        await repositories.checkout_chart(host.url, "shop", "*")


# -- what is not fetched -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["oci://registry.example.com/charts", "registry.example.com/charts"])
async def test_oci_registry_is_rejected_by_name(opened: Opened, url: str) -> None:
    with pytest.raises(AddressRefused, match="charts in OCI registries are not supported"):
        await opened(OVER_HTTP).checkout_chart(url, "shop", "1.0.0")


async def test_local_folder_is_no_helm_repository(opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(AddressRefused, match="only read from Helm repositories at https addresses"):
        await opened().checkout_chart(str(tmp_path), "shop", "1.0.0")


async def test_http_is_rejected_unless_allowed_also_for_an_archive(
    host: ChartServer, opened: Opened, tmp_path: Path
) -> None:
    host.publish("shop", "1.0.0")
    with pytest.raises(AddressRefused, match="protocol http is not allowed"):
        await opened(SourceSettings()).checkout_chart(host.url, "shop", "1.0.0")
    with chart_server(server_context(HOST_CERTIFICATE, tmp_path)) as secure:
        secure.publish("shop", "1.0.0", url=f"{host.url}/charts/shop-1.0.0.tgz")
        with pytest.raises(AddressRefused, match=r"add http to source\.protocols"):
            await opened(SourceSettings(), trust=TRUST).checkout_chart(secure.url, "shop", "1.0.0")
        secure.redirects["/index.yaml"] = f"{host.url}/index.yaml"
        both = SourceSettings(protocols=frozenset({"http", "https"}))
        with pytest.raises(AddressRefused, match="from https to http"):
            await opened(both, trust=TRUST).checkout_chart(secure.url, "shop", "1.0.0")
    assert host.seen == []


async def test_archive_at_a_link_local_address_is_rejected(host: ChartServer, opened: Opened) -> None:
    host.publish("shop", "1.0.0", url="http://169.254.169.254/latest/meta-data")
    with pytest.raises(AddressRefused, match="link-local"):
        await opened(OVER_HTTP).checkout_chart(host.url, "shop", "1.0.0")


async def test_archive_with_another_digest_is_rejected_and_not_kept(host: ChartServer, opened: Opened) -> None:
    repositories = opened(OVER_HTTP)
    host.publish("shop", "1.0.0", digest="0" * 64)
    for _ in range(2):
        with pytest.raises(CorruptSource, match="does not have the digest that the index names"):
            await repositories.checkout_chart(host.url, "shop", "1.0.0")


async def test_too_large_or_broken_archive_is_rejected(
    host: ChartServer, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    repositories = opened(OVER_HTTP)
    host.publish("broken", "1.0.0", archive=b"no archive")
    with pytest.raises(CorruptSource, match="cannot be unpacked") as caught:
        await repositories.checkout_chart(host.url, "broken", "1.0.0")
    assert caught.value.where == f"{host.url}/"
    monkeypatch.setattr(chart_repository, "MAX_ARCHIVE_BYTES", 100)
    host.publish("shop", "1.0.0")
    with pytest.raises(SourceTooLarge, match="larger than 100 bytes"):
        await repositories.checkout_chart(host.url, "shop", "1.0.0")


# -- credentials ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "type"), [("repository", "helm"), ("repo-creds", "helm"), ("repo-creds", "")])
async def test_credentials_of_the_repository_or_of_a_template_are_sent(
    host: ChartServer, opened: Opened, kind: str, type: str
) -> None:
    host.publish("shop", "1.0.0")
    host.wanted = BASIC
    repositories = opened(OVER_HTTP, credentials=credentials(host.url, kind, type=type))
    await repositories.checkout_chart(host.url, "shop", "1.0.0")
    assert [authorization for _, authorization in host.seen] == [BASIC, BASIC]
    files = [path for path in (repositories.folder / "charts").rglob("*") if path.is_file()]
    assert files and not any(PASSWORD.encode() in path.read_bytes() for path in files)


async def test_wrong_credentials_are_rejected_and_not_in_the_error(host: ChartServer, opened: Opened) -> None:
    host.wanted = "Basic other"
    repositories = opened(OVER_HTTP, credentials=credentials(host.url))
    with pytest.raises(SourceRefused, match="wants other credentials") as caught:
        await repositories.checkout_chart(host.url, "shop", "1.0.0")
    texts = f"{caught.value!r} {caught.value.__cause__!r} {repositories.chart_repository(host.url).host!r}"
    assert PASSWORD not in texts and BASIC not in texts


async def test_credentials_go_to_another_host_only_if_the_source_passes_them(
    host: ChartServer, other_host: ChartServer, opened: Opened
) -> None:
    repositories = opened(OVER_HTTP, credentials=credentials(host.url))
    other_host.files["/a.tgz"] = pack(chart_files("shop", "1.0.0"), "shop")
    host.publish("shop", "1.0.0", url=f"{other_host.url}/a.tgz", archive=other_host.files["/a.tgz"])
    await repositories.checkout_chart(host.url, "shop", "1.0.0")
    await repositories.checkout_chart(host.url, "shop", "1.0.0", passes_credentials=True, ignores_cache=True)
    assert [authorization for _, authorization in other_host.seen] == ["", BASIC]


async def test_redirect_is_followed_without_credentials_for_another_host(
    host: ChartServer, other_host: ChartServer, opened: Opened
) -> None:
    repositories = opened(OVER_HTTP, credentials=credentials(host.url))
    host.publish("shop", "1.0.0")
    other_host.files["/a.tgz"] = host.files["/charts/shop-1.0.0.tgz"]
    host.redirects = {"/charts/shop-1.0.0.tgz": "/moved", "/moved": f"{other_host.url}/a.tgz"}
    await repositories.checkout_chart(host.url, "shop", "1.0.0", passes_credentials=True)
    assert host.seen[-1] == ("/moved", BASIC) and other_host.seen == [("/a.tgz", "")]


async def test_endless_redirect_is_an_error(host: ChartServer, opened: Opened) -> None:
    host.redirects = {"/index.yaml": "/index.yaml"}
    with pytest.raises(SourceRefused, match="redirects more than 5 times"):
        await opened(OVER_HTTP).checkout_chart(host.url, "shop", "1.0.0")


async def test_charts_that_credentials_of_a_project_fetched_are_not_for_others(
    host: ChartServer, opened: Opened
) -> None:
    host.publish("shop", "1.0.0")
    host.wanted = BASIC
    repositories = opened(OVER_HTTP, credentials=credentials(host.url, project="team"))
    await repositories.checkout_chart(host.url, "shop", "1.0.0", project="team")
    with pytest.raises(SourceError, match="wants other credentials"):
        await repositories.checkout_chart(host.url, "shop", "1.0.0", project="other")


# -- certificates and proxies --------------------------------------------------------------------------------------


async def test_host_certificate_is_verified_with_the_configured_authority(opened: Opened, tmp_path: Path) -> None:
    with chart_server(server_context(HOST_CERTIFICATE, tmp_path)) as host:
        host.publish("shop", "1.0.0")
        with pytest.raises(
            SourceRefused, match=r"check the certificate of 127\.0\.0\.1, its authority in the ConfigMap"
        ):
            await opened(SourceSettings()).checkout_chart(host.url, "shop", "1.0.0")
        checkout = await opened(SourceSettings(), trust=TRUST).checkout_chart(host.url, "shop", "1.0.0")
        assert version_of(checkout) == "1.0.0"
        insecure = credentials(host.url, insecure="true")
        await opened(SourceSettings(), credentials=insecure).checkout_chart(host.url, "shop", "1.0.0")


async def test_client_certificate_is_sent(opened: Opened, tmp_path: Path) -> None:
    context = server_context(HOST_CERTIFICATE, tmp_path)
    context.verify_mode = context.verify_mode.CERT_REQUIRED
    context.load_verify_locations(cadata=AUTHORITY.pem.decode())
    with chart_server(context) as host:
        host.publish("shop", "1.0.0")
        with pytest.raises((SourceRefused, SourceUnreachable)):
            await opened(SourceSettings(), trust=TRUST).checkout_chart(host.url, "shop", "1.0.0")
        pair = {
            "tlsClientCertData": CLIENT_CERTIFICATE.pem.decode(),
            "tlsClientCertKey": CLIENT_CERTIFICATE.key_pem.decode(),
        }
        with_certificate = opened(SourceSettings(), trust=TRUST, credentials=credentials(host.url, **pair))
        assert version_of(await with_certificate.checkout_chart(host.url, "shop", "1.0.0")) == "1.0.0"
        broken = credentials(host.url, **{**pair, "tlsClientCertKey": "none"})
        with pytest.raises(SourceRefused, match="cannot be read"):
            await opened(SourceSettings(), trust=TRUST, credentials=broken).checkout_chart(host.url, "shop", "2.0.0")


async def test_proxy_of_the_repository_is_used(host: ChartServer, opened: Opened) -> None:
    """The proxy gets the whole URL of a host that only it can find."""
    repository = "http://charts.example.invalid"
    archive = pack(chart_files("shop", "1.0.0"), "shop")
    host.publish("shop", "1.0.0", archive=archive)
    host.files = {f"{repository}{path}": content for path, content in host.files.items()}
    through_proxy = opened(OVER_HTTP, credentials=credentials(repository, proxy=host.url))
    assert version_of(await through_proxy.checkout_chart(repository, "shop", "1.0.0")) == "1.0.0"
    bypassed = opened(OVER_HTTP, credentials=credentials(repository, proxy=host.url, noProxy=".example.invalid"))
    with pytest.raises(SourceUnreachable, match="does not answer"):
        await bypassed.checkout_chart(repository, "shop", "*")
