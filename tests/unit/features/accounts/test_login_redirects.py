"""Redirect target after login."""

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
def test_unsafe_redirect_target_is_replaced_by_apps(text: str) -> None:
    assert safe_redirect_path(text) == "/apps"


@pytest.mark.parametrize("text", ["/apps/argocd/x", "/apps?health=Degraded&page=2", "/settings", "/models/ml/qwen"])
def test_local_page_is_kept_as_redirect_target(text: str) -> None:
    assert safe_redirect_path(text) == text
