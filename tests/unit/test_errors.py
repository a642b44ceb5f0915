"""Errors: file and line in the message, pickling, and which errors are retryable."""

from __future__ import annotations

import pickle

import pytest

from argosy.errors import ClusterError, ManifestError, RenderError, UserError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UserError("is empty; fill it"), "is empty; fill it"),
        (UserError("is empty", where="a.yaml"), "a.yaml: is empty"),
        (UserError("is empty", where="a.yaml", line=3), "a.yaml:3: is empty"),
        (UserError("is empty", line=3), "line 3: is empty"),
    ],
)
def test_error_message_starts_with_its_file_and_line(error: UserError, said: str) -> None:
    assert str(error) == said


@pytest.mark.parametrize("kind", [UserError, ManifestError, RenderError])
def test_pickled_error_keeps_its_file_and_line(kind: type[UserError]) -> None:
    error = pickle.loads(pickle.dumps(kind("is empty", where="a.yaml", line=3)))
    assert (type(error), error.message, error.where, error.line) == (kind, "is empty", "a.yaml", 3)
    assert str(error) == "a.yaml:3: is empty"


@pytest.mark.parametrize(("code", "may_pass"), [(500, True), (503, True), (429, True), (404, False), (409, False)])
def test_only_429_and_5xx_cluster_errors_are_retryable(code: int, may_pass: bool) -> None:
    assert ClusterError("no", code=code).is_retryable is may_pass
