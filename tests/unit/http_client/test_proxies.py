"""Which requests go through a proxy: the lists of hosts that bypass it are read as Go reads them."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.http_client.proxies import Proxy, bypasses_proxy, choose_proxy


@pytest.mark.parametrize(
    ("host", "no_proxy", "is_bypassed"),
    [
        ("charts.example.com", "", False),
        ("charts.example.com", "example.com", True),
        ("charts.example.com", ".example.com", True),
        ("charts.example.com", "other, charts.example.com:443", True),
        ("charts.example.com", "charts.example.com:8443", False),
        ("charts.example.com", "*", True),
        ("badexample.com", "example.com", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("::1", "", True),
        ("localhost", "", True),
        ("127.0.0.1", "", True),
    ],
)
def test_hosts_of_the_list_bypass_the_proxy(host: str, no_proxy: str, is_bypassed: bool) -> None:
    assert bypasses_proxy(host, 443, no_proxy) is is_bypassed


def test_proxy_of_the_request_replaces_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://outer.example.com:3128")
    monkeypatch.setenv("no_proxy", "charts.example.com")
    assert choose_proxy("https", "charts.example.com", 443) is None
    assert choose_proxy("https", "other.example.com", 443) == Proxy("outer.example.com", 3128, {})
    inner = choose_proxy("https", "charts.example.com", 443, "http://me:p%40ss@inner.example.com:8080")
    assert inner == Proxy("inner.example.com", 8080, {"Proxy-Authorization": "Basic bWU6cEBzcw=="})


@pytest.mark.parametrize("proxy", ["socks5://user:secret@host:1080", "http://[bad", "https://user:secret@host"])
def test_unsupported_proxy_is_an_error_without_its_address(proxy: str) -> None:
    with pytest.raises(UserError) as caught:
        choose_proxy("https", "charts.example.com", 443, proxy)
    assert "secret" not in str(caught.value)
