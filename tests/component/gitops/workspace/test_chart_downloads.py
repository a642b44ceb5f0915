"""Commands fetch charts of Helm repositories, and dependencies of charts, without credentials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.errors import SourceUnreachable, UserError
from argosy.gitops.application import Source
from argosy.gitops.render import ChartRequest
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.workspace.command_file_tree_cache import CheckoutCache
from support.chart_server import ChartServer, chart_server


@pytest.fixture
def host() -> Iterator[ChartServer]:
    with chart_server() as server:
        server.publish("shop", "1.0.0")
        yield server


@pytest.fixture
def checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CheckoutCache]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = CheckoutCache(settings=SourceSettings(protocols=frozenset({"http"})), show_progress=print)
    yield cache
    cache.close()


def test_chart_and_dependencies_are_fetched_once(host: ChartServer, checkouts: CheckoutCache) -> None:
    source = Source(repo_url=host.url, chart="shop", ref="1.x")
    assert checkouts.open_chart(source).revision == "1.0.0"
    trees = checkouts.fetch_charts([ChartRequest(host.url, "shop", "1.x"), ChartRequest(host.url, "shop", "~1.0")])
    assert [tree.read_file("values.yaml") for tree in trees] == [b"size: small\n"] * 2
    assert (host.count("/index.yaml"), host.count("/charts/shop-1.0.0.tgz")) == (1, 1)


def test_host_that_does_not_answer_is_asked_once(host: ChartServer, checkouts: CheckoutCache) -> None:
    host.code = 503
    for chart in ("shop", "cart"):
        with pytest.raises(SourceUnreachable, match="HTTP 503"):
            checkouts.open_chart(Source(repo_url=host.url, chart=chart, ref="*"))
    assert host.count("/index.yaml") == 1


def test_repository_that_only_an_installation_knows_by_name_is_an_error(checkouts: CheckoutCache) -> None:
    with pytest.raises(UserError, match="only an installation knows the repository @team"):
        checkouts.fetch_charts([ChartRequest("@team", "shop", "1.0.0")])
