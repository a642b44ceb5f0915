"""The connection test of a Helm repository downloads its index, with the credentials that are being added."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.features.repositories import connection_test
from argosy.features.repositories.connection_test import FAILED, SUCCESSFUL
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from support.chart_server import ChartServer, chart_server

pytestmark = pytest.mark.anyio
LABELS = {"argocd.argoproj.io/secret-type": "repository"}


@pytest.fixture
def host() -> Iterator[ChartServer]:
    with chart_server() as server:
        server.publish("shop", "1.0.0")
        server.wanted = "Basic " + base64.b64encode(b"me:hunter22").decode()
        yield server


async def state(host: ChartServer, tmp_path: Path, **fields: str) -> tuple[str, str]:
    repositories = Repositories(tmp_path, SourceSettings(protocols=frozenset({"http"})))
    values = {"type": "helm", "url": host.url, **fields}
    connection = await connection_test.test_connection(
        values, repositories, [{"metadata": {"labels": LABELS}, "stringData": values}]
    )
    return connection.status, connection.message


async def test_index_that_can_be_read_is_a_successful_connection(host: ChartServer, tmp_path: Path) -> None:
    assert await state(host, tmp_path, username="me", password="hunter22") == (SUCCESSFUL, "")


async def test_wrong_credentials_and_other_web_pages_are_a_failed_connection(host: ChartServer, tmp_path: Path) -> None:
    status, message = await state(host, tmp_path, username="me", password="wrong")
    assert status == FAILED and "the host wants other credentials" in message and "wrong" not in message
    host.files["/index.yaml"] = b"<html></html>"
    status, message = await state(host, tmp_path, username="me", password="hunter22")
    assert status == FAILED and "this is not a Helm repository" in message


async def test_registry_is_not_tested(host: ChartServer, tmp_path: Path) -> None:
    status, message = await state(host, tmp_path, enableOCI="true")
    assert status == "Unknown" and "does not support OCI registries" in message and host.seen == []
