"""Proxy of an API server: from the kubeconfig, or from HTTPS_PROXY, http_proxy and NO_PROXY."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.http_proxy_selection import find_proxy
from argosy.kube.client.transport import HttpTransport

ENV = {"HTTPS_PROXY": "http://proxy:1", "http_proxy": "plain:2"}


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxy"),
    [
        ("https://api.example:6443", "", "http://proxy:1"),
        ("http://api.example", "", "http://plain:2"),
        ("https://127.0.0.1:6443", "", ""),
        ("https://localhost:6443", "", ""),
        ("https://[::1]:6443", "", ""),
        ("https://api.example", "*", ""),
        ("https://api.example", "example", ""),
        ("https://api.example", ".example", ""),
        ("https://example", ".example", "http://proxy:1"),
        ("https://api.example", "*.example", ""),
        ("https://notexample", "example", "http://proxy:1"),
        ("https://api.example:6443", "api.example:443", "http://proxy:1"),
        ("https://api.example:6443", "api.example:6443", ""),
        ("https://10.1.2.3", "10.0.0.0/8", ""),
        ("https://11.1.2.3", "a, 10.0.0.0/8", "http://proxy:1"),
        ("https://[fd00::1]:443", "fd00::/8", ""),
        ("https://[fd00::1]:443", "fd00::1", ""),
    ],
)
def test_proxy_from_the_environment_respects_no_proxy(server: str, no_proxy: str, proxy: str) -> None:
    assert find_proxy(server, env={**ENV, "NO_PROXY": no_proxy}) == proxy


def test_kubeconfig_proxy_overrides_the_environment() -> None:
    assert find_proxy("https://127.0.0.1", "http://mine:3", {"NO_PROXY": "*"}) == "http://mine:3"


def test_unsupported_proxy_scheme_is_an_error() -> None:
    with pytest.raises(UserError, match="socks5 proxy is not supported"):
        find_proxy("https://api.example", "socks5://proxy", {})


@pytest.mark.parametrize("server", ["http://[", "https://[::1", "https://api.example:99999", "https://api.example:x"])
def test_malformed_server_url_is_an_error(server: str) -> None:
    with pytest.raises(UserError, match="server is not a valid URL; write it as https://host:6443"):
        find_proxy(server, env=ENV)
    with pytest.raises(UserError, match="server is not a valid URL"):
        HttpTransport(Connection(server=server))
