"""Where somebody goes after they signed in."""

from __future__ import annotations

import pytest

from argosy.features.accounts.login_page import safe_redirect_path

ELSEWHERE = [
    "//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "apps", "", "/",
    "/logout", "/enter?code=x", "/apps\r\nX: y", "/apps x", "/ä", "/" + "x" * 3000, "/apps;url=//evil",
    "/login?next=/x", "/api/v1/session", "/auth/login", "/live?at=/apps", "///evil.example", "http:evil", "/apps\t",
    "//[x", "https://[x", "//x]",
]  # fmt: skip


@pytest.mark.parametrize("text", ELSEWHERE)
def test_no_address_of_another_site_is_gone_to(text: str) -> None:
    assert safe_redirect_path(text) == "/apps"


@pytest.mark.parametrize("text", ["/apps/argocd/x", "/apps?health=Degraded&page=2", "/settings", "/models/ml/qwen"])
def test_a_page_of_ours_is(text: str) -> None:
    assert safe_redirect_path(text) == text
