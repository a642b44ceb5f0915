"""Start messages of `argosy controller`: reconciling, or waiting for the current leader."""

from __future__ import annotations

import argparse
from typing import cast

import pytest

from argosy.cli.cluster_target import ClusterTarget
from argosy.features.controller.cli import _print_status
from argosy.main import main

SHOWN = argparse.Namespace(no_engine=False, log_format="text")


def test_waiting_controller_names_the_leader(capsys: pytest.CaptureFixture[str]) -> None:
    target = cast(ClusterTarget, argparse.Namespace(display_name="the sandbox"))
    _print_status(SHOWN, target, "argosy", "node-1_7_0b5c1f2a", "14:03:20 UTC")
    output = capsys.readouterr().err
    assert output.startswith("node-1_7_0b5c1f2a is the leader for the sandbox: it holds the Lease in namespace")
    assert "takes over when the leader stops, or at 14:03:20 UTC if the leader was killed" in output
    assert "the Lease of a killed leader must expire first" in output
    assert "This controller waits" in output and "Reconciling" not in output
    _print_status(SHOWN, target, "argosy", "", "")
    assert capsys.readouterr().err.startswith("Reconciling the Applications of the sandbox")


def test_invalid_listen_address_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "")
    assert main(["controller", "--port", "1", "--listen", "here", "--kubeconfig", "/nowhere"]) == 2
    assert "invalid address here" in capsys.readouterr().err
