"""Which Events a controller writes: the flag and the variable of Argo CD's application controller."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.controller.cli import _read_event_reasons
from argosy.gitops.status.application_event_manifests import ALL_EVENT_REASONS


@pytest.mark.parametrize(
    ("flag", "variable", "reasons"),
    [
        (None, "", ALL_EVENT_REASONS),
        (None, "none", frozenset()),
        (None, "OperationStarted", frozenset({"OperationStarted"})),
        ("all", "none", ALL_EVENT_REASONS),
        ("none", "", frozenset()),
        ("none,all", "", ALL_EVENT_REASONS),
        ("OperationCompleted, ResourceUpdated", "none", frozenset({"OperationCompleted", "ResourceUpdated"})),
    ],
)
def test_reasons_from_flag_and_variable(
    flag: str | None, variable: str, reasons: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOCD_ENABLE_K8S_EVENT", variable)
    assert _read_event_reasons(flag) == reasons


def test_unknown_reason_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="unknown reason 'OperationDone'; use all, none, or some of OperationCompleted"):
        _read_event_reasons("OperationDone")
