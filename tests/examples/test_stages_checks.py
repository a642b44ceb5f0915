"""Findings of `argosy check` in examples/stages, which contains mistakes on purpose; each finding is explained here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.main import main

ROOT = Path(__file__).parents[2]
APPS = "examples/stages/gitops/argocd/applications"
TRUE = {
    # its metadata says production, but it follows a branch of unfinished work
    ("AGY105", "error", f"{APPS}/stage02/app-stage02-model-alignment.yaml"),
    # status is never compared: these three lines have no effect
    ("AGY113", "info", f"{APPS}/stage00/app-stage00-datasciencecluster.yaml"),
    # both stages have the Namespace in Git: the cause of SharedResourceWarning
    ("AGY103", "warning", "examples/stages/gitops/stage01/model-serving/namespace.yaml"),
}


def test_check_reports_exactly_the_known_findings_in_the_stages_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    main(["check", "examples/stages", "-o", "json"])
    findings = json.loads(capsys.readouterr().out)["items"]
    assert {(finding["rule"], finding["severity"], finding["file"]) for finding in findings} == TRUE
