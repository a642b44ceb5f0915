"""What `argosy check` finds in the stages, where things are wrong on purpose: each finding has its sentence here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.main import main

ROOT = Path(__file__).parents[2]
APPS = "examples/stages/gitops/argocd/applications"
TRUE = {
    # it says of itself that it is production, and follows a branch of unfinished work
    ("AGY105", "error", f"{APPS}/stage02/app-stage02-model-alignment.yaml"),
    # nobody compares a status: three lines that do nothing
    ("AGY113", "info", f"{APPS}/stage00/app-stage00-datasciencecluster.yaml"),
    # both stages have the Namespace in Git: this is what SharedResourceWarning says
    ("AGY103", "warning", "examples/stages/gitops/stage01/model-serving/namespace.yaml"),
}


def test_what_check_finds_in_the_stages_is_true_and_is_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    main(["check", "examples/stages", "-o", "json"])
    findings = json.loads(capsys.readouterr().out)["items"]
    assert {(finding["rule"], finding["severity"], finding["file"]) for finding in findings} == TRUE
