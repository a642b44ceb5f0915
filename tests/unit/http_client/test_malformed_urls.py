"""A malformed URL gives a clear error and no traceback."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.models.cli import _build_query_rows
from argosy.gitops.live.inference_service import ServedModel
from argosy.http_client.anonymous_request import send_plain_request

MALFORMED = [
    "",
    "ftp://h/x",
    "http://",
    "http://[",
    "https://[::1",
    "http://h:99999/x",
    "http://h:x/",
    "http://\u2100/",
]


@pytest.mark.parametrize("url", [*MALFORMED, f"http://{'a' * 64}.example/", "http://127.0.0.1:1/\ud800"])
def test_malformed_url_is_a_user_error(url: str) -> None:
    with pytest.raises(UserError, match=r"invalid URL .*; write it as http://host:port/path"):
        send_plain_request(url, timeout_seconds=1)


@pytest.mark.parametrize("url", ["http://[", "http://m.localhost:99999/"])
def test_model_with_a_malformed_url_in_its_status_has_no_resolve_hint(url: str) -> None:
    model = ServedModel("m", "n", "True", "", url, "", "", "sklearn", "", "v2", has_revisions=False)
    assert [way for way in _build_query_rows(model) if "--resolve" in way[1]] == []
