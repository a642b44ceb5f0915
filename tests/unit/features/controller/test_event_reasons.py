"""Which Events a controller writes: the flag and the variable of Argo CD's application controller."""

from __future__ import annotations

import pytest

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
        ("none,all", "", frozenset()),
        ("all,none", "", ALL_EVENT_REASONS),
        ("OperationStarted,none,ResourceUpdated", "", frozenset()),
        ("OperationStarted,,", "", frozenset({"OperationStarted"})),
        ("", "all", frozenset()),
        ("OperationCompleted, ResourceUpdated", "none", frozenset({"OperationCompleted", "ResourceUpdated"})),
    ],
)
def test_reasons_from_flag_and_variable(
    flag: str | None, variable: str, reasons: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOCD_ENABLE_K8S_EVENT", variable)
    assert _read_event_reasons(flag) == reasons


def test_unknown_reason_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert _read_event_reasons("OperationDone,OperationStarted") == {"OperationStarted"}
    [message] = caplog.messages
    assert message.startswith("ignoring an unknown Event reason: where=--enable-k8s-event reason=OperationDone known=")
    assert "OperationCompleted,OperationStarted" in message
