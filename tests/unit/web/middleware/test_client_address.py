"""Client address: X-Forwarded-For is trusted only from configured proxies."""

from __future__ import annotations

import pytest

from argosy.web.middleware.client_address import find_client_address


@pytest.mark.parametrize(
    ("direct", "forwarded", "proxies", "expected"),
    [
        ("203.0.113.9", "", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "10.0.0.0/8", "203.0.113.9"),
        ("10.1.2.3", "198.51.100.1", "10.0.0.0/8", "198.51.100.1"),
        ("10.1.2.3", "1.1.1.1, 198.51.100.1", "10.0.0.0/8", "198.51.100.1"),
        ("10.1.2.3", "198.51.100.1, 10.9.9.9", "192.168.0.1, 10.0.0.0/8", "198.51.100.1"),
        ("10.1.2.3", "198.51.100.1, nonsense", "10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3", "", "10.0.0.0/8", "10.1.2.3"),
        ("fd00::1", "2001:db8::7", "fd00::/8", "2001:db8::7"),
        ("10.1.2.3", "198.51.100.1", "nonsense", "10.1.2.3"),
        ("", "198.51.100.1", "10.0.0.0/8", ""),
    ],
)
def test_only_trusted_proxies_may_set_forwarded_for(direct: str, forwarded: str, proxies: str, expected: str) -> None:
    assert find_client_address(direct, forwarded, proxies) == expected
