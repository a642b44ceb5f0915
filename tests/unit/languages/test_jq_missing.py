"""Without the jq library, an expression that needs it is reported and removes nothing."""

from __future__ import annotations

import pytest

from argosy.languages import jq_worker


def test_expression_that_needs_jq_reports_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq_worker, "jq", None)
    result = jq_worker.delete_paths({"document": {"a": [1, 2]}, "expressions": [".a[1:]"]})
    assert result["document"] == {"a": [1, 2]}
    assert result["faults"] == {".a[1:]": "this expression needs jq; install argosy[jq], or write a plain path"}
