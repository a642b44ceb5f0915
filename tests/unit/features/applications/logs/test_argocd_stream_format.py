"""Parameters of log requests: line count, time range and text filter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from argosy.errors import UserError
from argosy.features.applications.logs.argocd_stream_format import MAX_LINE_LENGTH, build_log_entry, read_log_request
from argosy.gitops.application_client.resource_actions_and_logs import LogOptions
from argosy.web.request import QueryParameters

NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def excerpt(text: str) -> LogOptions:
    return read_log_request(QueryParameters.parse(text), NOW).excerpt


def test_request_without_parameters_returns_the_whole_log() -> None:
    assert excerpt("") == LogOptions(follow=False, tail=None, since_seconds=None, previous=False)


def test_all_log_parameters_are_parsed() -> None:
    options = excerpt("follow=true&tailLines=7&sinceSeconds=60&previous=true")
    assert options == LogOptions(follow=True, tail=7, since_seconds=60, previous=True)


@pytest.mark.parametrize(
    "text",
    ["sinceTime=2026-01-02T11:59:00Z", "sinceTime=2026-01-02T11:59:00", "sinceTime.seconds=1767355140",
     "sinceTimeStr=2026-01-02T12:59:00%2B01:00"],
)  # fmt: skip
def test_since_time_is_converted_to_since_seconds(text: str) -> None:
    assert excerpt(text).since_seconds == 60


def test_since_time_in_the_future_becomes_one_second() -> None:
    assert excerpt("sinceTime=2026-01-02T13:00:00Z").since_seconds == 1


@pytest.mark.parametrize(
    ("query", "line", "is_taken"),
    [
        ("filter=warn", "Warning: slow", True),
        ("filter=warn&matchCase=true", "Warning: slow", False),
        ("filter=!warn", "Warning: slow", False),
        ("filter=!warn", "all is well", True),
        ("", "anything", True),
    ],
)
def test_log_filter_matches_or_excludes_text(query: str, line: str, is_taken: bool) -> None:
    assert read_log_request(QueryParameters.parse(query), NOW).matches(line) is is_taken


@pytest.mark.parametrize(
    "text",
    ["tailLines=many", "tailLines=-1", "sinceTime=soon", "follow=perhaps", "sinceSeconds=x", "untilTime=2026-01-01",
     "sinceTime.seconds=999999999999999"],
)  # fmt: skip
def test_invalid_or_unsupported_log_parameter_is_rejected(text: str) -> None:
    with pytest.raises(UserError):
        excerpt(text)


def test_overlong_log_line_is_truncated() -> None:
    assert len(build_log_entry("x" * (2 * MAX_LINE_LENGTH), "one", "now")["content"]) == MAX_LINE_LENGTH + 2
